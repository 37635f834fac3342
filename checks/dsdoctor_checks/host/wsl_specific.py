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
        pattern=r"/usr/lib/wsl/\S{1,60}.{0,60}(?:error|not|cannot)",
        examples=("/usr/lib/wsl/lib/x.so cannot be used",),
        not_examples=("/usr/lib/wsl/lib",),
        weight=50,
    ),
)
