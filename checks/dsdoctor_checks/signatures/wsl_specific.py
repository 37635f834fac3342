"""How `wsl-specific` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "wsl-specific"
TITLE = "WSL: libcuda.so is not found, or the WSL driver is limited"
HINT = "put `/usr/lib/wsl/lib` on `LD_LIBRARY_PATH` and link `libcuda.so` there"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor="libcuda.so",
        pattern=(
            r"libcuda\.so(?:\.1)?: cannot open|find CUDA library libcuda\.so"
            r"|libcuda\.so cannot found|cannot find -lcuda\b"
        ),
        examples=(
            "OSError: libcuda.so: cannot open shared object file: No such file or directory",
        ),
        not_examples=("libcuda.so found",),
        weight=68,
        masks=("nccl-unhandled-cuda-error", "nccl-p2p-or-shm-failure"),
    ),
    Signature(
        anchor="/usr/lib/wsl",
        pattern=r"/usr/lib/wsl/\S+.{0,80}(?:error|not|cannot)",
        examples=("/usr/lib/wsl/lib/x.so cannot be used",),
        not_examples=("/usr/lib/wsl/lib",),
        weight=50,
    ),
)
