"""No GPU is visible to this job.

## Why it matters
DeepSpeed then uses the CPU after one warning line. A job that expects GPUs exits, or runs a hundred
times slower.

## What to do
On a machine without an NVIDIA GPU there is nothing to fix. Otherwise check `CUDA_VISIBLE_DEVICES`
(empty or `-1` hides every GPU), start the container with `--gpus all`, request GPUs from the
scheduler (`--gres=gpu:N`), or look in `dmesg` for the reason why the driver does not list the GPU.

## References
- DeepSpeed accelerator/real_accelerator.py ("Setting accelerator to CPU")
- CUDA programming guide, environment variables
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DeepSpeedLive,
    Environment,
    Finding,
    Gpus,
    Missing,
    NvidiaKernel,
    OsInfo,
    Packages,
    RunNeeds,
    Scope,
    Signature,
    TorchBuild,
    TorchLive,
    check,
    fail,
    skip,
    warn,
)
from dsdoctor_checks._util import (
    gpu_expected,
    gpus_hidden,
    other_accelerator,
    variable,
    visible_tokens,
)

CONDITION = Condition(
    "no-gpu-visible",
    id="DSD104",
    scope=Scope.JOB,
    since="0.1",
    narrower=(
        "driver-missing",
        "driver-library-mismatch",
        "nvml-unusable",
        "container-lost-gpu",
        "docker-gpu-runtime-missing",
        "visible-devices-invalid",
        "mig-without-instance",
    ),
)
_CPU = "DeepSpeed will run on the CPU"


@check(CONDITION)
def some_gpu_visible(
    gpus: Gpus | Missing,
    kernel: NvidiaKernel | Missing,
    env: Environment | Missing,
    os: OsInfo | Missing,
    live: TorchLive | Missing,
    run: RunNeeds,
    torch: TorchBuild | Missing,
    deepspeed: DeepSpeedLive | Missing,
    packages: Packages | Missing,
) -> Iterator[Finding]:
    """Warns where there is no NVIDIA GPU; fails where there is one, or one was requested."""
    if isinstance(live, TorchLive) and live.devices:
        return
    say = fail if run.wants_gpu else warn
    evidence = {
        "asked_for": list(run.gpus),
        "expect_gpus": run.expect_gpus,
        "cuda_visible_devices": variable(env, "CUDA_VISIBLE_DEVICES"),
    }
    there = isinstance(gpus, Gpus) and bool(gpus.gpus or gpus.count)
    if isinstance(gpus, Gpus) and there:
        if visible_tokens(env) == ():
            value = variable(env, "CUDA_VISIBLE_DEVICES")
            count = max(len(gpus.gpus), gpus.count or 0)
            yield say(
                f"`CUDA_VISIBLE_DEVICES={value}` hides all {count} GPUs of this machine",
                effect=_CPU,
                hint="unset `CUDA_VISIBLE_DEVICES`, or set it to the GPUs that the job should use",
                gpus=count,
                **evidence,
            )
        return
    if isinstance(gpus, Missing) and gpus.is_unknown:
        yield skip(f"the GPUs could not be counted: {gpus.detail}", **evidence)
        return
    if not gpu_expected(RunNeeds(), kernel, gpus):
        other = other_accelerator(torch, deepspeed, packages, env)
        if other is None and isinstance(os, OsInfo) and os.system == "Darwin":
            other = "Apple MPS or the CPU"  # NVIDIA has no driver for macOS
        if other is not None and not run.wants_gpu:
            yield skip(f"DeepSpeed uses {other} here, not an NVIDIA GPU", accelerator=other)
            return
        yield say(
            "no NVIDIA GPU on this machine, but GPUs are requested"
            if run.wants_gpu
            else "no NVIDIA GPU on this machine",
            effect="the job finds no device and exits at startup" if run.wants_gpu else _CPU,
            hint="run on a machine with a GPU, or omit `--gpus` and `--expect-gpus`"
            if run.wants_gpu
            else "run on a machine with a GPU if the job needs one",
            **evidence,
        )
        return
    on_bus = len(kernel.pci) if isinstance(kernel, NvidiaKernel) else 0
    if gpus_hidden(os, kernel, env):
        yield say(
            f"{on_bus} NVIDIA GPUs on the PCI bus, but none is assigned to this container or job",
            effect=_CPU,
            hint="start the container with `--gpus all`, or request GPUs from the scheduler"
            " (`--gres=gpu:1`)",
            on_bus=on_bus,
            **evidence,
        )
        return
    yield fail(
        f"{on_bus} NVIDIA GPUs on the PCI bus, but the driver lists none",
        effect=_CPU,
        hint="look for the reason with `dmesg | grep -i -e nvrm -e nvidia`",
        on_bus=on_bus,
        **evidence,
    )


HINT = "check `nvidia-smi -L` and `CUDA_VISIBLE_DEVICES`"

SIGNATURES = (
    Signature(
        anchor="is_available()",
        pattern=r"torch\.cuda\.is_available\(\)['\x22]?(?: is|:| =| ==| returned| returns)? ?False",
        examples=(
            "torch.cuda.is_available() = False",
            "torch.cuda.is_available(): False",
            "Attempting to deserialize object on a device but torch.cuda.is_available() is False",
        ),
        not_examples=(
            "if torch.cuda.is_available() and x is False:",
            "torch.cuda.is_available() = True",
        ),
        weight=30,
    ),
    Signature(
        anchor=(
            "No CUDA GPUs are available",
            "Found no NVIDIA driver",
            "no CUDA-capable device",
            "no GPU resources available",
            "No GPU found",
            "No CUDA device",
            "cudaErrorNoDevice",
            "AMP or APEX",
            "runtime error (38)",
            "CUDA is not available",
            "No GPU available",
        ),
        pattern=(
            r"No CUDA GPUs are available|Found no NVIDIA driver|no CUDA-capable device"
            r"|no GPU resources available|No (?:GPU|CUDA devices?) (?:found"
            r"|available)|cudaErrorNoDevice|AMP or APEX \(`--fp16`\).{0,60}can only be used on CUDA"
            r"|(?:Error|error|Exception): .{0,40}CUDA is not available"
        ),
        examples=(
            "RuntimeError: No CUDA GPUs are available",
            "RuntimeError: Found no NVIDIA driver on your system.",
        ),
        not_examples=(
            "Torch did not find cuda available",
            "No CUDA device is needed to tokenize",
        ),
        weight=62,
    ),
    Signature(
        anchor=(
            "no GPUs found",
            "Cannot use fp16 without",
            "ccelerator is not detected",
            "requires a GPU",
            "No GPU",
            "found no CUDA devices",
            "active drivers",
            "Failed to infer device type",
            "Torch is not able to use GPU",
            "No devices were found",
            "is needed for quantization",
            "requires CUDA",
            "arch_list[-1]",
        ),
        pattern=(
            r"only supported with GPUs, no GPUs found|Cannot use fp16 without (?:CUDA"
            r"|accelerator)|Accelerator is not detected, cannot perform"
            r"|mixed precision requires a GPU(?! \(not 'mps)"
            r"|GPU (?:or XPU )?is needed for quantization|found no CUDA devices"
            r"|\b0 active drivers|Failed to infer device type"
            r"|Torch is not able to use GPU|^No devices were found"
            r"|arch_list\[-1\] \+= '\+PTX'|Error: .{0,40}(?:[Tt]raining"
            r"|[Ii]nference) .{0,30}requires CUDA"
        ),
        examples=(
            "torch.distributed.DistBackendError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!",
            "SystemError: Cannot use fp16 without CUDA.",
            "RuntimeError: No GPU found. A GPU is needed for quantization.",
            "ValueError: fp16 mixed precision requires a GPU",
            "RuntimeError: 0 active drivers ([]). There should only be one.",
        ),
        not_examples=(
            "ValueError: fp16 mixed precision requires a GPU (not 'mps').",
            "No GPU peers found, using the network",
        ),
        weight=60,
    ),
    Signature(
        anchor=(
            "GPUs are available",
            "devices are available",
            "No GPU detected",
            "no GPU detected",
            "GPU not found",
            "Error: No GPUs detected",
        ),
        pattern=(
            r"\bNo (?:HIP|XPU|NPU|CUDA) (?:GPUs|devices) are available"
            r"|Error: [Nn]o GPUs? detected|Error: .{0,40}GPU not found"
        ),
        examples=("RuntimeError: No HIP GPUs are available", "AssertionError: No GPU detected"),
        not_examples=("2 GPUs are available",),
        weight=58,
    ),
    Signature(
        anchor=(
            "No supported gpu backend found",
            "your machine only has: []",
            "since the accelerator is not available",
            "is not available on CPU",
            "Unsloth",
            "GPU is required to quantize",
            "NVML Shared Library Not Found",
            "No visible GPU devices",
            "CUDA unavailable, invalid device",
            "torch.cuda.device_count(): 0",
            "requires a GPU",
        ),
        pattern=(
            r"No supported gpu backend found|But your machine only has: \[\]"
            r"|`CUDAAccelerator` can ?not run on your system since the accelerator is not available"
            r"|Flash ?Attention.{0,20} is not available on CPU|Unsloth: No NVIDIA GPU found"
            r"|Unsloth cannot find any torch accelerator|GPU is required to quantize"
            r"|NVML Shared Library Not Found|No visible GPU devices|CUDA unavailable, invalid device"
            r"|torch\.cuda\.device_count\(\): 0\b|Using `load_in_[48]bit=True` requires a GPU"
        ),
        examples=(
            "lightning.fabric.utilities.exceptions.MisconfigurationException: No supported gpu backend found!",
            " But your machine only has: []",
            "ValueError: Flash Attention 2 is not available on CPU. Please make sure torch can access a CUDA device.",
            "NotImplementedError: Unsloth: No NVIDIA GPU found? Unsloth currently only supports GPUs!",
            "pynvml.NVMLError_LibraryNotFound: NVML Shared Library Not Found",
        ),
        not_examples=(
            "Unsloth: Fast Llama patching release 2024.8",
            "Paged attention is not available on CPU, eager attention is used",
        ),
        weight=58,
    ),
    Signature(
        anchor=(
            "NVML_ERROR_LIBRARY_NOT_FOUND",
            "CUDA_ERROR_NO_DEVICE",
            "libnvidia-ml.so",
            "no GPU devices found",
        ),
        pattern=(
            r"(?<!= )NVML_ERROR_LIBRARY_NOT_FOUND|CUDA_ERROR_NO_DEVICE|libnvidia-ml\.so\S*: cannot open"
            r"|couldn't find libnvidia-ml\.so|no GPU devices found"
        ),
        examples=(
            "nvmlInit failed: NVML_ERROR_LIBRARY_NOT_FOUND",
            "Call to cuInit results in CUDA_ERROR_NO_DEVICE",
            "OSError: libnvidia-ml.so.1: cannot open shared object file: No such file or directory",
            "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.",
        ),
        not_examples=("libnvidia-ml.so.1 => /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",),
        weight=60,
        masks=("cuda-init-driver-state",),
    ),
    Signature(
        # what scripts and libraries say in words of their own
        anchor=("GPU", "gpu", "CUDA", "cuda"),
        pattern=(
            r"(?i)(?:Error|Exception): (?:.{0,60}\W)?(?:no (?:visible |usable |CUDA |NVIDIA ){0,2}GPUs?(?: devices?)? (?:(?:is|are|was|were) )?(?:available|found|detected|visible)"
            r"|(?:GPU|GPU device|CUDA|CUDA device|CUDA GPU)s? (?:is|are|was|were)? ?not (?:available|found|detected)"
            r"|(?:at least one|need a?) ?(?:CUDA|GPU|NVIDIA)(?: GPU| device)? is (?:needed|required)|CUDA is required\b"
            r"|torch\.cuda\.is_available\(\)`? (?:is|returned|should be True but is) `?False"
            r"|GPUs? requested but none (?:is|are) available)"
        ),
        examples=(
            "AssertionError: No GPUs available",
            "RuntimeError: You are trying to train with CUDA but no GPU is available.",
            "SystemError: GPU device not found",
            "RuntimeError: At least one GPU is needed",
            "ValueError: torch.cuda.is_available() should be True but is False.",
            "MisconfigurationException: GPUs requested but none are available.",
            "RuntimeError: cuda is not available, but the device is set to cuda",
        ),
        not_examples=(
            "UserWarning: User provided device_type of 'cuda', but CUDA is not available. Disabling",
            "RuntimeError: CUDA error: an illegal memory access was encountered",
            "ImportError: libcudart.so.12: file not found",
        ),
        weight=46,
    ),
    Signature(
        anchor=(
            "cuda driver can't be loaded",
            "found no CUDA devices. Set",
            "not been implemented on CPU backend",
            "The NVIDIA Driver was not detected",
        ),
        pattern=(
            r"cuda driver can't be loaded|found no CUDA devices\. Set|op had not been implemented on CPU backend"
            r"|The NVIDIA Driver was not detected"
        ),
        examples=(
            "RuntimeError: cuda driver can't be loaded, is cuda enabled?",
            "RuntimeError: DeepSpeed JIT builder for 'fused_adam' found no CUDA devices. Set TORCH_CUDA_ARCH_LIST",
            "ValueError: This op had not been implemented on CPU backend.",
        ),
        not_examples=("the metric has not been implemented on CPU backend yet",),
        weight=44,
    ),
)
