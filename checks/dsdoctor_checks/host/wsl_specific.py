"""WSL: libcuda.so is not found, or the WSL driver is limited.

## Why it matters
In WSL the driver comes from Windows through `/usr/lib/wsl/lib`; a Linux driver beside it, or a
missing link, hides it.

## What to do
Put `/usr/lib/wsl/lib` on `LD_LIBRARY_PATH` and link `libcuda.so` there.

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition("wsl-specific", id="DSD1052", scope=Scope.NODE, since="0.1")

HINT = "put `/usr/lib/wsl/lib` on `LD_LIBRARY_PATH` and link `libcuda.so` there"

SIGNATURES = (
    Signature(
        anchor=("libcuda.so", "find CUDA library"),
        pattern=(
            r"libcuda\.so(?:\.1)?: cannot open|find CUDA library (?:libcuda\.so|in \(null\))"
            r"|libcuda\.so cannot found"
        ),
        examples=(
            "OSError: libcuda.so: cannot open shared object file: No such file or directory",
            "NCCL WARN Failed to find CUDA library in (null) (NCCL_CUDA_PATH=(null))",
            "AssertionError: libcuda.so cannot found!",
        ),
        not_examples=("libcuda.so found",),
        weight=68,
        masks=("nccl-unhandled-cuda-error", "nccl-p2p-or-shm-failure"),
    ),
    Signature(
        anchor="/usr/lib/wsl",
        pattern=r"/usr/lib/wsl/\S+.{0,80}(?:error|not|cannot)",
        examples=(
            "/usr/lib/wsl/lib/x.so cannot be used",
            "/usr/lib/wsl/lib/libcuda.so.1: error: file truncated",
        ),
        not_examples=("/usr/lib/wsl/lib",),
        weight=50,
    ),
    Signature(
        anchor=(
            "blocked by the operating system",
            "WSL environment detected",
            "libdxcore",
            "dxgkio",
            "dxg:",
            "/dev/dxg",
        ),
        pattern=(
            r"GPU access blocked by the operating system|WSL environment detected but no adapters"
            r"|libdxcore\.so: cannot open|dxgkio_\w+: .{0,60}failed"
            r"|/dev/dxg.{0,40}(?:No such|not found)"
        ),
        examples=(
            "Failed to initialize NVML: GPU access blocked by the operating system",
            "nvidia-container-cli: initialization error: WSL environment detected but no adapters were found: unknown.",
        ),
        not_examples=("WSL environment detected",),
        weight=76,
        masks=("docker-gpu-runtime-missing", "no-gpu-visible", "cuda-init-driver-state"),
    ),
    Signature(
        anchor=("cannot find -lcuda", "out of memory", "cudaHostAlloc"),
        pattern=r"cannot find -lcuda\b|CUDA error: out of memory|cudaHostAlloc",
        examples=(
            "/usr/bin/ld: cannot find -lcuda: No such file or directory",
            "RuntimeError: CUDA error: out of memory",
        ),
        not_examples=("cannot find -lcudart",),
        weight=69,
        masks=("jit-build-header-or-lib-missing", "gpu-oom"),
        near=("WSL", "microsoft-standard", "/usr/lib/wsl", "/mnt/c/"),
    ),
    Signature(
        anchor=(
            "Could not find real path of /sys/class/pci_bus",
            "unhandled cuda error",
            "unhandled system error",
            "ncclUnhandledCudaError",
        ),
        pattern="Could not find real path of /sys/class/pci_bus|unhandled (?:cuda|system) error|ncclUnhandledCudaError",
        examples=(
            "NCCL WARN Could not find real path of /sys/class/pci_bus/0000:21/../../0000:21:00.0",
            "torch.distributed.DistBackendError: NCCL error in: x.hpp:275, unhandled cuda error, NCCL version 2.20.5",
        ),
        not_examples=("cuda error handled, NCCL WARN retrying",),
        weight=58,
        masks=("nccl-unhandled-cuda-error", "nccl-p2p-or-shm-failure"),
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
)
