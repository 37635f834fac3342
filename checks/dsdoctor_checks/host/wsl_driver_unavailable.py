"""In WSL, the Windows NVIDIA driver is not found or not used.

## Why it matters
WSL uses the Windows driver, whose libraries are in `/usr/lib/wsl/lib`. A Linux driver that is also
installed hides them, and the loader does not always search that folder.

## What to do
Install the NVIDIA driver in Windows only, and remove NVIDIA's Linux driver packages from WSL. Run
`wsl --update` and `wsl --shutdown` in Windows. Add `/usr/lib/wsl/lib` to `LD_LIBRARY_PATH`. Pinned memory
is limited in WSL: turn off `pin_memory`, or raise `memory` in `.wslconfig`.

## References
- https://docs.nvidia.com/cuda/wsl-user-guide/index.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Condition,
    Finding,
    Level,
    LibCuda,
    Missing,
    NotStated,
    NvidiaKernel,
    Nvml,
    OsInfo,
    RunNeeds,
    Scope,
    Signature,
    TorchLive,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import cuda_works

CONDITION = Condition(
    "wsl-driver-unavailable",
    id="DSD1052",
    scope=Scope.NODE,
    since="0.1",
    formerly=("wsl-specific",),
)

_FOLDER = "/usr/lib/wsl/"
#: cudaErrorMemoryAllocation.
_NO_MEMORY = 2
#: microsoft/WSL 8447 and 12467, mlcommons/ck 916: 4 GPUs fail so, 2 or 3 work; more memory does not help.
_TOO_MANY = (
    "CUDA does not start in WSL: it runs out of memory when it counts the GPUs (error 2), as it does"
    " with four or more"
)
_FEWER = (
    "use fewer GPUs (`CUDA_VISIBLE_DEVICES=0,1`); if that does not help, disable the others in the Device"
    " Manager of Windows, or run the job on Linux without WSL"
)
#: The kernel that WSL 1 pretends to be; that of WSL 2 is a Linux with another ending.
_FIRST = re.compile(r"4\.4\.0-\d{5}-Microsoft")
#: NVML's codes for a driver that is not loaded and for a library that is not found.
_NO_DRIVER = (9, 12)


@check(CONDITION)
def wsl_driver_is_used(
    os: OsInfo,
    kernel: NvidiaKernel | Missing,
    lib: LibCuda | Missing,
    live: TorchLive | Missing,
    nvml: Nvml | Missing,
    run: RunNeeds,
) -> Iterator[Finding]:
    """Checks that WSL has /dev/dxg and that jobs load the libcuda of Windows."""
    if not os.wsl:
        yield skip("not in WSL")
        return
    path = None if isinstance(lib, Missing) else lib.path
    dxg = _dxg(kernel)
    evidence: dict[str, Any] = {"libcuda": path, "dxg": dxg}
    code = nvml.error.code if isinstance(nvml, Nvml) and nvml.error else None
    if cuda_works(live):
        yield ok(**evidence)
        return
    if _FIRST.fullmatch(_release(os)):
        yield (fail if run.wants_gpu else warn)(
            f"this is WSL 1 (kernel {os.release}), in which no program can use a GPU",
            effect="CUDA finds no device",
            hint="run `wsl --set-version NAME 2` in Windows, with the name that `wsl -l -v` lists",
            release=os.release,
        )
    elif dxg is False:
        yield (fail if run.wants_gpu else warn)(
            "there is no `/dev/dxg` in WSL, which CUDA needs to use a GPU",
            effect="CUDA finds no device",
            hint="use WSL 2 (`wsl --set-version NAME 2`), update it (`wsl --update`), and install "
            "the NVIDIA driver in Windows",
            **evidence,
        )
    elif path is not None and not path.startswith(_FOLDER):
        yield fail(
            f"a job would load `{path}`, but in WSL it must load the Windows libcuda in"
            f" `{_FOLDER}lib`",
            effect="CUDA cannot be initialized: a Linux driver does not work in WSL",
            hint=f"remove NVIDIA's Linux driver packages, and put `{_FOLDER}lib` first on "
            "`LD_LIBRARY_PATH`",
            **evidence,
        )
    elif code in _NO_DRIVER:
        yield fail(
            f"NVML finds no driver (error {code}); WSL uses the NVIDIA driver of Windows",
            effect="neither `nvidia-smi` nor CUDA works",
            hint="update the NVIDIA driver in Windows, run `wsl --update` and `wsl --shutdown` there,"
            " and install no driver inside WSL",
            **evidence,
            code=code,
        )
    elif (
        isinstance(live, TorchLive) and live.cuda_ok is False and live.cuda_error_code == _NO_MEMORY
    ):
        yield fail(
            _TOO_MANY,
            effect="every rank exits at its first CUDA call",
            hint=_FEWER,
            **evidence,
            code=live.cuda_error_code,
        )
    else:
        yield ok(**evidence)


def _release(os: OsInfo) -> str:
    """The kernel's; "" if a paste does not tell it."""
    try:
        return os.release
    except NotStated:
        return ""


def _dxg(kernel: NvidiaKernel | Missing) -> bool | None:
    """Whether /dev/dxg exists; None if it is not known, as in a paste."""
    try:
        return None if isinstance(kernel, Missing) else kernel.dxg
    except NotStated:
        return None


HINT = (
    "remove NVIDIA's Linux driver packages from WSL, update the driver in Windows, run `wsl --update` and"
    " `wsl --shutdown` there, and add `/usr/lib/wsl/lib` to `LD_LIBRARY_PATH`"
)
_LIBCUDA = (
    "in WSL, add `/usr/lib/wsl/lib` to `LD_LIBRARY_PATH`; elsewhere install the NVIDIA driver, or start the"
    " container with `--gpus all`"
)
_PINNED = (
    "turn off `pin_memory`, or raise `memory` in `.wslconfig` and run `wsl --shutdown` in Windows"
)
#: What shows that a log is from WSL.
_IN_WSL = ("microsoft-standard", "WSL2", "WSL 2", "wsl2", "/usr/lib/wsl", "/mnt/c/", "DESKTOP-")

SIGNATURES = (
    Signature(
        pattern=r"libcuda\.so\.1: cannot open shared object file",
        source="glibc 2.17-2.41 elf/dl-load.c",
        examples=(
            "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
        ),
        level=Level.STRONG,
        requires=_IN_WSL,
        masks=("no-gpu-visible", "nccl-unhandled-cuda-error", "nccl-intra-node-transport-failed"),
    ),
    Signature(
        pattern=r"libcuda\.so: cannot open",
        source="glibc 2.17-2.41 elf/dl-load.c; the library is part of NVIDIA's driver",
        message="`libcuda.so` of the NVIDIA driver is not found, which is common in WSL",
        hint=_LIBCUDA,
        examples=(
            "OSError: libcuda.so: cannot open shared object file: No such file or directory",
        ),
        level=Level.STRONG,
        masks=("nccl-unhandled-cuda-error", "nccl-intra-node-transport-failed"),
    ),
    # elsewhere NCCL continues without what it requested from the driver
    Signature(
        pattern=r"find CUDA library (?:libcuda\.so|in \(null\))",
        source="nccl 2.12-2.28 misc/cudawrap.cc",
        message="`libcuda.so` of the NVIDIA driver is not found in WSL",
        hint=_LIBCUDA,
        examples=(
            "NCCL WARN Failed to find CUDA library libcuda.so (NCCL_CUDA_PATH='')",
            "NCCL WARN Failed to find CUDA library in (null) (NCCL_CUDA_PATH=(null))",
        ),
        level=Level.STRONG,
        requires=_IN_WSL,
        masks=("nccl-unhandled-cuda-error", "nccl-intra-node-transport-failed"),
    ),
    Signature(
        pattern=r"libcuda\.so cannot found",
        source="triton 2.0-3.5 backends/nvidia/driver.py",
        examples=("AssertionError: libcuda.so cannot found!",),
        requires=_IN_WSL,
    ),
    Signature(
        pattern=r"/lib/wsl/\S{1,60}.{0,80}(?:error|not|cannot)",
        source="glibc 2.17-2.41 elf/dl-load.c: libraries of the Windows driver, mounted by WSL 2",
        examples=(
            "/usr/lib/wsl/lib/x.so cannot be used",
            "/usr/lib/wsl/lib/libcuda.so.1: error: file truncated",
        ),
        not_examples=("/usr/lib/wsl/lib",),
    ),
    Signature(
        pattern="GPU access blocked by the operating system",
        source="NVIDIA driver 470-580 NVML, nvmlErrorString",
        examples=("Failed to initialize NVML: GPU access blocked by the operating system",),
        level=Level.CERTAIN,
        masks=("docker-gpu-runtime-missing", "no-gpu-visible", "cuda-init-driver-state"),
    ),
    Signature(
        pattern="WSL environment detected but no adapters",
        source="libnvidia-container 1.0-1.17 src/nvc.c",
        examples=(
            "nvidia-container-cli: initialization error: WSL environment detected but no adapters were found: unknown.",
        ),
        level=Level.CERTAIN,
        masks=("docker-gpu-runtime-missing", "no-gpu-visible", "cuda-init-driver-state"),
    ),
    Signature(
        pattern=r"libdxcore\.so: cannot open",
        source="glibc 2.17-2.41 elf/dl-load.c",
        examples=("libdxcore.so: cannot open",),
        level=Level.CERTAIN,
        masks=("docker-gpu-runtime-missing", "no-gpu-visible", "cuda-init-driver-state"),
    ),
    Signature(
        pattern="/dev/dxg.{0,40}(?:No such|not found)",
        source="WSL 2: NVIDIA's libcuda and Docker name the device that WSL makes",
        examples=(
            "/dev/dxg ... No such",
            "/dev/dxg ... not found",
        ),
        not_examples=("/dev/dxg ... No",),
        level=Level.CERTAIN,
        masks=("docker-gpu-runtime-missing", "no-gpu-visible", "cuda-init-driver-state"),
    ),
    Signature(
        pattern=r"cannot find -lcuda\b|CUDA error: out of memory|cudaHostAlloc",
        source=(
            "binutils 2.20-2.44 ld/ldmain.c; CUDA 10-13 cudart cudaGetErrorString, as torch prints "
            "it"
        ),
        examples=(
            "/usr/bin/ld: cannot find -lcuda: No such file or directory",
            "RuntimeError: CUDA error: out of memory",
            "cudaHostAlloc",
        ),
        not_examples=("cannot find -lcudart",),
        level=Level.CERTAIN,
        masks=("build-dependency-missing", "gpu-oom"),
        near=("WSL", "microsoft-standard", "/usr/lib/wsl", "/mnt/c/"),
    ),
    Signature(
        pattern="Could not find real path of /sys/class/pci_bus|unhandled (?:cuda|system) error|ncclUnhandledCudaError",
        source="nccl 2.2-2.32 src/graph/xml.cc; torch 1.8-2.13 csrc/distributed/c10d/NCCLUtils.hpp",
        examples=(
            "NCCL WARN Could not find real path of /sys/class/pci_bus/0000:21/../../0000:21:00.0",
            "torch.distributed.DistBackendError: NCCL error in: x.hpp:275, unhandled cuda error, NCCL version 2.20.5",
            "ncclUnhandledCudaError: Call to CUDA function failed.",
        ),
        masks=("nccl-unhandled-cuda-error", "nccl-intra-node-transport-failed"),
        requires=(
            "microsoft-standard",
            "WSL2",
            "WSL 2",
            "/usr/lib/wsl",
            "/mnt/c/",
            "DESKTOP-",
            "wsl2",
        ),
    ),
    Signature(
        pattern=r"cudaGetDeviceCount\(\).{0,140}Error 2: out of memory",
        source=(
            "torch 1.8-2.13 c10/cuda/CUDAFunctions.cpp; microsoft/WSL 8447 and 12467, mlcommons/ck"
            " 916: 4 GPUs fail, 3 or 2 work, with more memory too"
        ),
        message=_TOO_MANY,
        hint=_FEWER,
        examples=(
            "UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 2: out of memory (Triggered internally at ../c10/cuda/CUDAFunctions.cpp:108.)",
        ),
        not_examples=(
            "UserWarning: CUDA initialization: CUDA driver initialization failed. Error 2: out of memory",
        ),
        level=Level.CERTAIN,
        requires=("microsoft-standard-WSL", "/usr/lib/wsl", "/mnt/c/Users"),
        masks=("gpu-oom", "no-gpu-visible", "cuda-init-driver-state"),
    ),
    Signature(
        pattern=r"Error 2: out of memory|in pin_memory|c10/cuda/driver_api\.cpp|^RuntimeError: [Cc][Uu][Dd][Aa] error: out of memory",
        source=(
            "torch 1.8-2.13 c10/cuda/CUDAFunctions.cpp, c10/cuda/driver_api.cpp; deepspeed "
            "0.9-0.19 accelerator/cuda_accelerator.py"
        ),
        hint=_PINNED,
        examples=(
            "UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 2: out of memory",
            '  File "/x/deepspeed/accelerator/cuda_accelerator.py", line 217, in pin_memory',
            "RuntimeError: CUDA error: out of memory",
            "c10/cuda/driver_api.cpp",
        ),
        level=Level.CERTAIN,
        requires=("microsoft-standard-WSL", "/usr/lib/wsl", "/mnt/c/Users"),
        masks=("gpu-oom", "no-gpu-visible", "cuda-init-driver-state"),
    ),
    Signature(
        pattern="Could not find real path of /sys/class/pci_bus",
        source="nccl 2.4-2.32 src/graph/xml.cc",
        examples=(
            "NCCL WARN Could not find real path of /sys/class/pci_bus/0000:01/../../0000:01:00.0",
            "graph/xml.cc:332 NCCL WARN Could not find real path of /sys/class/pci_bus/0000:65",
        ),
        message="NCCL does not find a GPU on the PCI bus in `/sys`, which WSL does not show",
        hint="install a newer torch, whose NCCL knows WSL; outside WSL, make `/sys` of the host visible"
        " in the container or virtual machine",
        level=Level.WEAK,
        unless=("Init COMPLETE",),
    ),
    Signature(
        pattern=r"Cuda failure (?:\d{1,3} )?'operation not supported'",
        source="nccl 2.2-2.32 src/include/checks.h, with cudart's words",
        examples=("NCCL WARN Cuda failure 'operation not supported'",),
        not_examples=("failure 'operation not supported'",),
        level=Level.STRONG,
        requires=("microsoft-standard-WSL", "/usr/lib/wsl", "/mnt/c/Users", "WSL2", "WSL 2"),
        masks=("cuda-init-driver-state", "docker-gpu-runtime-missing", "nccl-unhandled-cuda-error"),
    ),
    Signature(
        pattern="CUDA error: unknown error",
        source="torch 1.5-2.13 c10/cuda/CUDAException.cpp, with cudart's words for error 999",
        examples=("RuntimeError: CUDA error: unknown error",),
        level=Level.STRONG,
        requires=("microsoft-standard-WSL", "/usr/lib/wsl", "/mnt/c/Users", "WSL2", "WSL 2"),
        masks=("cuda-init-driver-state", "docker-gpu-runtime-missing", "nccl-unhandled-cuda-error"),
    ),
    Signature(
        pattern=r"cudaGetDeviceCount\(\).{0,20} Error (?:304|500)\b",
        source="torch 1.8-2.13 c10/cuda/CUDAFunctions.cpp",
        examples=(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 500: named symbol not found",
            "cudaGetDeviceCount() Error 304",
        ),
        not_examples=(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 999: unknown error",
        ),
        level=Level.STRONG,
        requires=("microsoft-standard-WSL", "/usr/lib/wsl", "/mnt/c/Users", "WSL2", "WSL 2"),
        masks=("cuda-init-driver-state", "docker-gpu-runtime-missing", "nccl-unhandled-cuda-error"),
    ),
    Signature(
        pattern="^Error 304: OS call failed",
        source="torch 1.8-2.13 c10/cuda/CUDAFunctions.cpp",
        examples=("Error 304: OS call failed",),
        level=Level.STRONG,
        requires=("microsoft-standard-WSL", "/usr/lib/wsl", "/mnt/c/Users", "WSL2", "WSL 2"),
        masks=("cuda-init-driver-state", "docker-gpu-runtime-missing", "nccl-unhandled-cuda-error"),
    ),
    Signature(
        pattern=r"nvml\w{0,60}(?:: |.{0,20})Not Supported",
        source="nvidia-ml-py 13.615.71 pynvml.py",
        examples=("nvmlname: Not Supported",),
        not_examples=("Not Supported",),
        level=Level.STRONG,
        requires=("microsoft-standard-WSL", "/usr/lib/wsl", "/mnt/c/Users", "WSL2", "WSL 2"),
        masks=("cuda-init-driver-state", "docker-gpu-runtime-missing", "nccl-unhandled-cuda-error"),
    ),
    Signature(
        pattern=r"libnvidia-ml\.so\.1: cannot open",
        source="libnvidia-container 1.0-1.17 src/cli; glibc 2.17-2.41 elf/dl-load.c",
        examples=(
            "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory: unknown.",
        ),
        level=Level.STRONG,
        requires=("microsoft-standard-WSL", "/usr/lib/wsl", "/mnt/c/Users", "WSL2", "WSL 2"),
        masks=("cuda-init-driver-state", "docker-gpu-runtime-missing", "nccl-unhandled-cuda-error"),
    ),
)
