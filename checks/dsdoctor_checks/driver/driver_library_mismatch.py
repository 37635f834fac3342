"""The NVIDIA kernel module and the driver libraries have different versions.

## Why it matters
An update replaced the libraries while the old kernel module stayed loaded, or the other way round.
The two refuse to work together: NVML returns error 18, and CUDA returns error 803.

## What to do
Reboot, or unload and reload the `nvidia*` modules while nothing uses the GPUs. In a container, use
the NVIDIA Container Toolkit to mount the host's libraries instead of installing a driver in the
image.

## References
- nvml.h: `NVML_ERROR_LIB_RM_VERSION_MISMATCH` (18)
- driver_types.h: `cudaErrorSystemDriverMismatch` (803)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Gpus,
    GpuTopology,
    Level,
    LibCuda,
    Missing,
    NvidiaKernel,
    Nvml,
    Scope,
    Signature,
    TorchLive,
    check,
    fail,
)
from dsdoctor_checks._util import cuda_works, numbers
from dsdoctor_checks.driver import _tables

CONDITION = Condition(
    "driver-library-mismatch",
    id="DSD103",
    scope=Scope.NODE,
    since="0.1",
    leads_to=("cuda-init-driver-state",),
    blinds=(Gpus, GpuTopology),
)

HINT = "reboot, or reload the `nvidia` kernel modules while nothing uses the GPUs"
#: A module that is newer than the libraries has been loaded already: a reboot changes nothing.
_OLD_LIBRARY = (
    "find the older copy with `ldconfig -p | grep -e libcuda -e libnvidia-ml` and in `LD_LIBRARY_PATH`,"
    " and remove it; in a container, remove driver libraries from the image"
)


def _library_version(nvml: Nvml | Missing, lib: LibCuda | Missing) -> tuple[str, str] | None:
    """Name and version of a driver library; a `cuda-compat` library is meant to differ."""
    if isinstance(lib, LibCuda) and lib.version and not lib.compat and not lib.stub:
        return "libcuda", lib.version
    if isinstance(nvml, Nvml) and nvml.nvml_version and nvml.nvml_version.count(".") > 1:
        return "NVML", nvml.nvml_version.split(".", 1)[1]
    return None


@check(CONDITION)
def module_matches_library(
    kernel: NvidiaKernel | Missing,
    nvml: Nvml | Missing,
    lib: LibCuda | Missing,
    live: TorchLive | Missing,
) -> Iterator[Finding]:
    """Asks NVML first, then CUDA, then compares file versions."""
    if cuda_works(live):
        return
    module = None if isinstance(kernel, Missing) else kernel.module_version
    library = _library_version(nvml, lib)
    code = nvml.error.code if isinstance(nvml, Nvml) and nvml.error else None
    compat = isinstance(lib, LibCuda) and lib.compat
    cuda_code = live.cuda_error_code if isinstance(live, TorchLive) else None
    differ = module and library and numbers(module) != numbers(library[1])
    said = code == _tables.NVML_VERSION_MISMATCH or (cuda_code == _tables.MISMATCH and not compat)
    if not said and not differ:
        return
    older = differ and module and library and numbers(library[1]) < numbers(module)
    evidence = {
        "module_version": module,
        "library": library[0] if library else None,
        "library_version": library[1] if library else None,
        "nvml_code": code,
        "cuda_error_code": cuda_code,
    }
    if differ and module and library:
        text = f"the loaded kernel module is {module}, but {library[0]} is {library[1]}"
    elif code == _tables.NVML_VERSION_MISMATCH:
        text = f"NVML and the loaded kernel module have different versions (error {code})"
    else:
        text = f"libcuda and the loaded kernel module have different versions (error {cuda_code})"
    yield fail(
        text,
        effect="`nvidia-smi` and CUDA do not start; every rank exits at startup",
        hint=_OLD_LIBRARY if older else HINT,
        **evidence,
    )


SIGNATURES = (
    Signature(
        pattern="(?i)driver/library version mismatch",
        source="NVIDIA driver 390-590 NVML nvmlErrorString, nvidia-smi",
        examples=("Failed to initialize NVML: Driver/library version mismatch",),
        level=Level.CERTAIN,
        masks=(
            "no-gpu-visible",
            "cuda-init-driver-state",
            "docker-gpu-runtime-missing",
            "container-lost-gpu",
        ),
    ),
    Signature(
        pattern="(?i)NVML/RM version mismatch",
        source="nvidia-ml-py 13.615.71 pynvml.py",
        examples=(
            "pynvml.NVMLError_LibRmVersionMismatch: RM has detected an NVML/RM version mismatch.",
        ),
        level=Level.CERTAIN,
        masks=(
            "no-gpu-visible",
            "cuda-init-driver-state",
            "docker-gpu-runtime-missing",
            "container-lost-gpu",
        ),
    ),
    Signature(
        pattern="(?i)LibRmVersionMismatch: ",
        source="nvidia-ml-py 7-13 pynvml.py",
        examples=(
            "pynvml.NVMLError_LibRmVersionMismatch: RM has detected an NVML/RM version mismatch.",
        ),
        level=Level.CERTAIN,
        masks=(
            "no-gpu-visible",
            "cuda-init-driver-state",
            "docker-gpu-runtime-missing",
            "container-lost-gpu",
        ),
    ),
    Signature(
        pattern="(?i)NVRM: API mismatch",
        source="NVIDIA driver 300-590 kernel module (NVRM)",
        examples=("NVRM: API mismatch: the client has the version 535.1",),
        level=Level.CERTAIN,
        masks=(
            "no-gpu-visible",
            "cuda-init-driver-state",
            "docker-gpu-runtime-missing",
            "container-lost-gpu",
        ),
    ),
    Signature(
        pattern=r"(?<!_CUDA_COMPAT_STATUS=System has )unsupported display driver|Error 803|cudaErrorSystemDriverMismatch|runtime error \(803\)",
        source=(
            "CUDA 10.1-13.0 cudart cudaGetErrorString and cudaGetErrorName, as torch and nvidia-"
            "smi print them"
        ),
        examples=(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda driver combination",
            "RuntimeError: cuda runtime error (803) : system has unsupported display driver / cuda driver combination at x.cpp:50",
            "cudaErrorSystemDriverMismatch",
        ),
        not_examples=(
            "_CUDA_COMPAT_STATUS=System has unsupported display driver / cuda driver combination (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH) cuInit()=803",
        ),
        level=Level.CERTAIN,
        masks=("docker-gpu-runtime-missing", "container-not-started"),
    ),
    Signature(
        pattern=r"kernel version \S+ does not match DSO version|(?<!combination \()CUDA_ERROR_SYSTEM_DRIVER_MISMATCH|\(803 vs\. 0\)",
        source=(
            "tensorflow 1.0-2.20 xla/stream_executor/cuda/cuda_diagnostics.cc; CUDA 10.1-13.0 "
            "cuGetErrorName"
        ),
        examples=(
            "cuda_diagnostics.cc:313] kernel version 470.57.2 does not match DSO version 470.63.1 -- cannot find working devices in this configuration",
            "failed call to cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: system has unsupported display driver",
            "(803 vs. 0)",
        ),
        not_examples=("the plugin's DSO version 2 does not match DSO version 3",),
        level=Level.CERTAIN,
        masks=("no-gpu-visible", "cuda-init-driver-state"),
    ),
    Signature(
        pattern="(?<!= )(?<!== )NVML_ERROR_LIB_RM_VERSION_MISMATCH",
        source="nvidia-ml-py 11-13 pynvml.py",
        examples=(
            "tensorpack.utils.nvml.NvmlException: NVML_ERROR_LIB_RM_VERSION_MISMATCH",
            "nvmlInit failed: NVML_ERROR_LIB_RM_VERSION_MISMATCH (18)",
        ),
        not_examples=("    if code == NVML_ERROR_LIB_RM_VERSION_MISMATCH:",),
        level=Level.CERTAIN,
        masks=("no-gpu-visible", "cuda-init-driver-state"),
    ),
)
