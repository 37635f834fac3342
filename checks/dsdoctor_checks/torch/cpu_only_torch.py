"""The installed torch is a CPU build, which uses no GPU.

## Why it matters
`torch.cuda.is_available()` is false whatever the driver, and DeepSpeed uses the CPU after one warning
line.

## What to do
Install a CUDA build that the driver supports: `dsdoctor fix install-torch-build`. CPU builds come from
the index `whl/cpu`, from conda if it saw no GPU during installation, and from PyPI on Windows.

## References
- https://pytorch.org/get-started/locally/
- torch/version.py: `cuda`
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    CudaToolkits,
    Environment,
    Finding,
    Gpus,
    LaunchCommand,
    Level,
    LibCuda,
    Missing,
    NvidiaKernel,
    Nvml,
    OsInfo,
    Packages,
    Patient,
    RunNeeds,
    Scope,
    Signature,
    TorchBuild,
    TorchLive,
    Why,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._amd import ROCM_BUILD, amd_gpus
from dsdoctor_checks._util import (
    capabilities,
    gpu_expected,
    is_jetson,
    is_listed,
    pair,
    stated_for_cpu,
)
from dsdoctor_checks.torch._builds import (
    NEWEST,
    choose,
    driver_of,
    machine_of,
    none_fits,
    offered,
    python_of,
)

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
    lib: LibCuda | Missing,
    live: TorchLive | Missing,
    os: OsInfo | Missing,
    patient: Patient | Missing,
    packages: Packages | Missing,
    toolkits: CudaToolkits | Missing,
    command: LaunchCommand | Missing,
) -> Iterator[Finding]:
    """A failure only if a GPU is present or requested."""
    if torch.version is None:
        yield skip("torch is not installed")
        return
    if torch.cuda is not None or torch.hip is not None:
        yield ok(torch=torch.version, cuda=torch.cuda, hip=torch.hip)
        return
    if stated_for_cpu(run, env, command):
        yield skip(f"torch {torch.version} is a CPU build, and the job is set to use the CPU")
        return
    unasked = isinstance(gpus, Missing) and gpus.why is Why.NOT_ASKED
    nvcc = isinstance(toolkits, CudaToolkits) and toolkits.chosen is not None
    unasked = unasked and (isinstance(os, Missing) or nvcc) and isinstance(kernel, Missing)
    if (
        unasked
        and _is_one_of_several(torch.version, packages)
        and not gpu_expected(run, kernel, gpus, env)
    ):
        # a list of packages says nothing about GPUs, and people who paste one rarely intend to
        # train without a GPU; nor do those who have a CUDA toolkit
        yield warn(
            f"torch {torch.version} is a CPU build, which uses no GPU",
            effect="the job exits at its first use of a GPU, or runs on the CPU",
            hint="install a CUDA build of torch if the job is to use GPUs",
            torch=torch.version,
        )
        return
    if not gpu_expected(RunNeeds(), kernel, gpus, env) and (amd := amd_gpus(os, kernel)):
        # a warning unless GPUs are asked for: it may be no more than the one in the CPU
        yield (fail if run.wants_gpu else warn)(
            f"torch {torch.version} is a CPU build, but this machine has {amd} × AMD GPU",
            effect="the job exits at its first use of a GPU, or runs on the CPU",
            hint=f"install {ROCM_BUILD}",
            torch=torch.version,
            amd_gpus=amd,
        )
        return
    if is_jetson(os) and not gpu_expected(RunNeeds(), kernel, gpus, env):
        yield fail(
            f"torch {torch.version} is a CPU build, but this is a Jetson, which has a GPU",
            effect="the job exits at its first use of a GPU, or runs on the CPU",
            hint="install NVIDIA's build of torch for this JetPack release: PyPI and download.pytorch.org"
            " have none for the GPU of a Jetson before JetPack 7",
            torch=torch.version,
        )
        return
    expected = gpu_expected(run, kernel, gpus, env)
    if not expected and run.gpu_needed_by and ("+cpu" in torch.version or "+" not in torch.version):
        yield fail(
            f"torch {torch.version} is a CPU build, but {run.gpu_needed_by} needs a GPU",
            effect="every rank stops at startup",
            hint="run on a machine with a GPU and a CUDA build of torch; on the CPU, use the backend"
            " `gloo` and a number of processes",
            torch=torch.version,
            needed_by=run.gpu_needed_by,
        )
        return
    if not expected:
        yield skip(f"torch {torch.version} is a CPU build, and no GPU is present or requested")
        return
    found = [gpu.name for gpu in gpus.gpus] if isinstance(gpus, Gpus) else []
    driver = nvml.driver_version if isinstance(nvml, Nvml) else None
    there = f"this machine has {len(found)} × {found[0]}" if found else "a GPU is expected"
    used = driver_of(kernel, nvml, lib)
    wanted = set(capabilities(gpus, live, run, env).values())
    build = None
    if used or wanted:
        release, python = pair(torch.version) or NEWEST, python_of(patient)
        build = choose(release, used, wanted, machine_of(os), python)
    finding = fail(
        f"torch {torch.version} is a CPU build, but {there}",
        effect="the job exits at its first use of a GPU, or runs on the CPU",
        hint=f"run `{build.command(torch.version, patient, packages)}`"
        if build
        else none_fits(used, wanted, machine_of(os), python_of(patient))
        if used or wanted
        else "install a CUDA build of torch that the job's driver supports",
        torch=torch.version,
        gpus=found,
        count=len(found),
        driver=driver,
        asked_for=list(run.gpus),
        expect_gpus=run.expect_gpus,
    )
    yield offered(finding, build)


#: Packages of the channel `pytorch`, which has them for Linux and Windows only.
_OF_CONDA = ("cpuonly", "pytorch-mutex")


def _is_one_of_several(version: str, packages: Packages | Missing) -> bool:
    """Whether there is a build with CUDA for the same system: macOS has builds for the CPU only."""
    return "+cpu" in version or any(is_listed(packages, name) for name in _OF_CONDA)


HINT = (
    "install a CUDA build of torch; `dsdoctor fix install-torch-build` picks the one that the driver"
    " and the GPUs support"
)

SIGNATURES = (
    Signature(
        pattern="[Tt]orch not compiled with CUDA enabled",
        source="torch 2.13.0 cuda/__init__.py, libtorch_python.so",
        examples=(
            "AssertionError: Torch not compiled with CUDA enabled",
            "RuntimeError: torch not compiled with CUDA enabled",
        ),
        level=Level.CERTAIN,
        masks=("no-gpu-visible",),
    ),
    Signature(
        # not of bf16, whose message says this only of devices other than a CPU
        pattern="(?:fp16|FP16).{0,200}can only be used on CUDA",
        source="transformers 4.28.1-4.36.2 training_args.py",
        examples=(
            "ValueError: fp16 mixed precision (`--fp16`) can only be used on CUDA devices.",
            "ValueError: Mixed precision training with AMP or APEX (`--fp16`) and half precision evaluation (`--fp16_full_eval`) can only be used on CUDA devices.",
            "FP16 ... can only be used on CUDA",
        ),
        not_examples=(
            "this profiler can only be used on CUDA 12",
            "BF16 half precision evaluation (`--bf16_full_eval`) can only be used on CUDA devices",
        ),
    ),
    Signature(
        pattern="Type fp16 is not supported on your device",
        source="deepspeed 0.19.8 runtime/engine.py",
        examples=(
            "ValueError: Type fp16 is not supported on your device.",
            "[rank1]: ValueError: Type fp16 is not supported on your device.",
        ),
        level=Level.STRONG,
        requires=(
            "Setting accelerator to CPU",
            "Setting ds_accelerator to cpu",
            "ds_accelerator to cpu",
        ),
        message="DeepSpeed runs on the CPU here, which does not support fp16",
        hint="install a CUDA build of torch on a machine with a GPU; to train on the CPU, remove `fp16` from the config",
    ),
    Signature(
        pattern="deserialize object on a CUDA device",
        source="torch 1.0-2.13 serialization.py",
        examples=(
            "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.",
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a CPU-only machine, please use torch.load with map_location='cpu'",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"lib(?:torch_cuda|c10_cuda)\.so: cannot open shared object",
        source="glibc 2.17-2.41 elf/dl-load.c",
        examples=(
            "OSError: libtorch_cuda.so: cannot open shared object file: No such file or directory",
            "ImportError: libc10_cuda.so: cannot open shared object file: No such file or directory",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="Distributed package doesn't have NCCL built in|doesn't have NCCL built",
        source="torch 2.13.0 distributed/distributed_c10d.py",
        examples=(
            "RuntimeError: Distributed package doesn't have NCCL built in",
            '    raise RuntimeError("Distributed package doesn\'t have NCCL built in")',
        ),
        level=Level.STRONG,
        unless=("Windows", "win32", "C:\\", "D:\\", "E:\\"),
    ),
    Signature(
        pattern=r"module 'torch\._C' has no attribute '_cuda_setDevice'|has no attribute '_cuda_\w+'",
        source="python 3.5-3.14 Objects/moduleobject.c",
        examples=(
            "AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'",
            "AttributeError: module 'torch._C' has no attribute '_cuda_getDevice'",
        ),
        not_examples=("has no attribute '_cuda_ is fine",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"torch(?:\s+|==|: ?)\d+\.\d+\.\d+\+cpu.{0,80}(?:cuda|CUDA).{0,30}(?:False|not available)",
        source="diagnostics that print torch's version, such as python -m torch.utils.collect_env",
        examples=(
            "torch 2.1.0+cpu, CUDA available: False",
            "torch==1.13.1+cpu  torch.cuda.is_available(): False",
            "torch:7.7.7+cpu ... cuda ... False",
            "torch 7.7.7+cpu ... cuda ... not available",
        ),
        not_examples=("torch 2.3.0+cpu",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="PyTorch is not linked with support for cuda",
        source="torch 1.5-2.13 c10/core/impl/DeviceGuardImplInterface.h",
        examples=("RuntimeError: PyTorch is not linked with support for cuda devices",),
        masks=("no-gpu-visible",),
    ),
    Signature(
        pattern="CUDA without ATen_cuda library",
        source="torch 2.13.0 include/ATen/detail/CUDAHooksInterface.h",
        examples=("CUDA without ATen_cuda library",),
        masks=("no-gpu-visible",),
    ),
    Signature(
        pattern=r"instantiate dummy base class (?:CUDA|_?Cuda|Stream|Event)\w*",
        source="torch 1.0-2.13 _utils.py, cuda/streams.py, cuda/graphs.py",
        examples=(
            "RuntimeError: Tried to instantiate dummy base class CUDAGraph",
            "instantiate dummy base class Cudaname",
            "instantiate dummy base class Streamname",
            "instantiate dummy base class Eventname",
        ),
        masks=("no-gpu-visible",),
    ),
    Signature(
        pattern="no attribute '_CudaDeviceProperties'",
        source="python 3.5-3.14 Objects/moduleobject.c",
        examples=("no attribute '_CudaDeviceProperties'",),
        masks=("no-gpu-visible",),
    ),
    Signature(
        pattern=r"Could not run 'aten::\S{1,80}' with arguments from the 'CUDA' backend",
        source="torch 1.5-2.13 aten/src/ATen/core/dispatch/OperatorEntry.cpp",
        examples=(
            "RuntimeError: Could not run 'aten::empty.memory_format' with arguments from the 'CUDA' backend.",
        ),
        not_examples=(
            "RuntimeError: Could not run 'torchvision::nms' with arguments from the 'CUDA' backend.",
        ),
        masks=("no-gpu-visible",),
    ),
    Signature(
        pattern="cannot import name '_cuda_getCurrentRawStream'",
        source="python 3.7-3.14 Python/ceval.c import_from",
        examples=(
            "ImportError: cannot import name '_cuda_getCurrentRawStream' from 'torch._C' (/x/torch/_C.so)",
        ),
        masks=("no-gpu-visible",),
    ),
    Signature(
        pattern="(?:PyTorch|Torch|torch) was compiled without CUDA support",
        source="torch 2.13.0 cuda/__init__.py",
        examples=(
            "RuntimeError: PyTorch was compiled without CUDA support",
            "[rank1]: RuntimeError: PyTorch was compiled without CUDA support",
            "torch was compiled without CUDA support",
        ),
        level=Level.CERTAIN,
        masks=("no-gpu-visible",),
    ),
    Signature(
        pattern=r"Torch not compiled with XPU enabled|PyTorch is not linked with support for (?P<device>xpu|npu|hpu|mtia|privateuseone) devices",
        source="torch 2.4-2.13 xpu/__init__.py, c10/core/impl/DeviceGuardImplInterface.h",
        message="The installed torch was built without support for that accelerator",
        hint="install a torch build for the accelerator (for Intel GPUs from `https://download.pytorch.org/whl/xpu`), or the extension that brings its backend, and import it first",
        examples=(
            "AssertionError: Torch not compiled with XPU enabled",
            "RuntimeError: PyTorch is not linked with support for xpu devices",
            "RuntimeError: PyTorch is not linked with support for npu devices",
            "RuntimeError: PyTorch is not linked with support for hpu devices",
            "RuntimeError: PyTorch is not linked with support for mtia devices",
            "RuntimeError: PyTorch is not linked with support for privateuseone devices",
        ),
        level=Level.STRONG,
    ),
)
