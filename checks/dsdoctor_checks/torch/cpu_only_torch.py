"""The installed torch is a CPU build, on a machine with a GPU.

## Why it matters
`torch.cuda.is_available()` is false whatever the driver says, and DeepSpeed takes the CPU as its
accelerator after one line of warning.

## What to do
Install a CUDA build from an index that fits the driver. CPU builds come from the index `whl/cpu`,
from conda where the GPU was not seen at install, and from wheels for Windows on PyPI.

## References
- https://pytorch.org/get-started/locally/
- torch/version.py: `cuda`
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Missing,
    NvidiaKernel,
    Nvml,
    RunNeeds,
    Scope,
    Signature,
    TorchBuild,
    check,
    fail,
    ok,
    skip,
)
from dsdoctor_checks._util import gpu_expected

CONDITION = Condition(
    "cpu-only-torch",
    id="DSD302",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("install-torch-build",),
    leads_to=("no-gpu-visible",),
)


@check(CONDITION)
def torch_has_cuda(
    torch: TorchBuild,
    gpus: Gpus | Missing,
    kernel: NvidiaKernel | Missing,
    nvml: Nvml | Missing,
    env: Environment | Missing,
    run: RunNeeds,
) -> Iterator[Finding]:
    """A failure only where a GPU is there or asked for."""
    if torch.version is None:
        yield skip("torch is not installed")
        return
    if torch.cuda is not None or torch.hip is not None:
        yield ok(torch=torch.version, cuda=torch.cuda, hip=torch.hip)
        return
    if not gpu_expected(run, kernel, gpus, env):
        yield skip(f"torch {torch.version} is a CPU build, and no GPU is here or asked for")
        return
    found = [gpu.name for gpu in gpus.gpus] if isinstance(gpus, Gpus) else []
    driver = nvml.driver_version if isinstance(nvml, Nvml) else None
    there = f"this machine has {len(found)} × {found[0]}" if found else "a GPU is here or asked for"
    yield fail(
        f"torch {torch.version} is a CPU build, but {there}",
        effect="no GPU is used: DeepSpeed runs on the CPU",
        hint="install a CUDA build, such as"
        " `pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu126`",
        torch=torch.version,
        gpus=found,
        count=len(found),
        driver=driver,
        asked_for=list(run.gpus),
        expect_gpus=run.expect_gpus,
    )


HINT = "install the CUDA build of torch: `pip install torch --index-url https://download.pytorch.org/whl/cu128`"

SIGNATURES = (
    Signature(
        anchor="not compiled with CUDA enabled",
        pattern=r"[Tt]orch not compiled with CUDA enabled",
        examples=(
            "AssertionError: Torch not compiled with CUDA enabled",
            "RuntimeError: torch not compiled with CUDA enabled",
        ),
        not_examples=(
            "Torch compiled with CUDA 12.8",
            "OpenCV was not compiled with CUDA enabled",
        ),
        weight=78,
        masks=("no-gpu-visible",),
    ),
    Signature(
        anchor=("can only be used on CUDA",),
        pattern=r"(?:fp16|FP16|half precision).{0,200}can only be used on CUDA",
        examples=(
            "ValueError: fp16 mixed precision (`--fp16`) can only be used on CUDA devices.",
            "ValueError: Mixed precision training with AMP or APEX (`--fp16`) and half precision evaluation (`--fp16_full_eval`) can only be used on CUDA devices.",
        ),
        not_examples=(
            "fp16 is used on CUDA devices",
            "this profiler can only be used on CUDA 12",
        ),
        weight=50,
    ),
    Signature(
        anchor=("Type fp16 is not supported on your device",),
        pattern=r"Type fp16 is not supported on your device",
        examples=(
            "ValueError: Type fp16 is not supported on your device.",
            "[rank1]: ValueError: Type fp16 is not supported on your device.",
        ),
        not_examples=(
            "Type fp32 is supported",
            "ValueError: Type bf16 is not supported on your device.",
        ),
        weight=60,
        requires=(
            "Setting accelerator to CPU",
            "Setting ds_accelerator to cpu",
            "ds_accelerator to cpu",
        ),
    ),
    Signature(
        anchor=("deserialize object on a CUDA device",),
        pattern=r"deserialize object on a CUDA device",
        examples=(
            "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.",
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a CPU-only machine, please use torch.load with map_location='cpu'",
        ),
        not_examples=(
            "deserialize object",
            "Attempting to deserialize object on CUDA device 3 but torch.cuda.device_count() is 1.",
        ),
        weight=60,
    ),
    Signature(
        anchor=(
            "libtorch_cuda.so: cannot open",
            "libc10_cuda.so: cannot open",
            ".so: cannot open shared object",
        ),
        pattern=r"lib(?:torch_cuda|c10_cuda)\.so: cannot open shared object",
        examples=(
            "OSError: libtorch_cuda.so: cannot open shared object file: No such file or directory",
            "ImportError: libc10_cuda.so: cannot open shared object file: No such file or directory",
        ),
        not_examples=("libtorch_cpu.so: cannot open shared object",),
        weight=62,
    ),
    Signature(
        anchor=("have NCCL built in", "doesn't have NCCL built"),
        pattern=r"Distributed package doesn't have NCCL built in|doesn't have NCCL built",
        examples=(
            "RuntimeError: Distributed package doesn't have NCCL built in",
            '    raise RuntimeError("Distributed package doesn\'t have NCCL built in")',
        ),
        not_examples=(
            "NCCL built in",
            "wheels for Linux have NCCL built in",
        ),
        weight=65,
        unless=("Windows", "win32", "C:\\", "D:\\", "E:\\"),
    ),
    Signature(
        anchor=("_cuda_setDevice", "has no attribute '_cuda_"),
        pattern=(
            r"module 'torch\._C' has no attribute '_cuda_setDevice'|has no attribute '_cuda_\w+'"
        ),
        examples=(
            "AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'",
            "AttributeError: module 'torch._C' has no attribute '_cuda_getDevice'",
        ),
        not_examples=("torch._C._cuda_setDevice(device)",),
        weight=65,
    ),
    Signature(
        anchor=("+cpu",),
        pattern=(
            r"torch(?:\s+|==|: ?)\d+\.\d+\.\d+\+cpu.{0,80}(?:cuda|CUDA).{0,30}(?:False"
            r"|not available)"
        ),
        examples=(
            "torch 2.1.0+cpu, CUDA available: False",
            "torch==1.13.1+cpu  torch.cuda.is_available(): False",
        ),
        not_examples=(
            "torch 2.1.0+cu118, CUDA available: True",
            "torch 2.3.0+cpu",
        ),
        weight=60,
    ),
    Signature(
        anchor=(
            "is not linked with support for cuda",
            "without ATen_cuda library",
            "dummy base class",
            "_CudaDeviceProperties",
            "from the 'CUDA' backend",
            "_cuda_getCurrentRawStream",
        ),
        pattern=(
            r"PyTorch is not linked with support for cuda|CUDA without ATen_cuda library"
            r"|instantiate dummy base class (?:CUDA|_?Cuda|Stream|Event)\w*|no attribute '_CudaDeviceProperties'"
            r"|Could not run 'aten::\S{1,80}' with arguments from the 'CUDA' backend"
            r"|cannot import name '_cuda_getCurrentRawStream'"
        ),
        examples=(
            "RuntimeError: PyTorch is not linked with support for cuda devices",
            "RuntimeError: Tried to instantiate dummy base class CUDAGraph",
            "RuntimeError: Could not run 'aten::empty.memory_format' with arguments from the 'CUDA' backend.",
            "ImportError: cannot import name '_cuda_getCurrentRawStream' from 'torch._C' (/x/torch/_C.so)",
        ),
        not_examples=(
            "RuntimeError: Could not run 'torchvision::nms' with arguments from the 'CUDA' backend.",
            "Tried to instantiate dummy base class Tokenizer",
        ),
        weight=56,
        masks=("no-gpu-visible",),
    ),
    Signature(
        anchor=("was compiled without CUDA support",),
        pattern=r"(?:PyTorch|Torch|torch) was compiled without CUDA support",
        examples=(
            "RuntimeError: PyTorch was compiled without CUDA support",
            "[rank1]: RuntimeError: PyTorch was compiled without CUDA support",
        ),
        not_examples=("bitsandbytes was compiled without CUDA support",),
        weight=70,
        masks=("no-gpu-visible",),
    ),
)
