"""How `nccl-version-mismatch` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "nccl-version-mismatch"
TITLE = "another NCCL is loaded than torch was built with"
HINT = "remove the second NCCL (`pip list | grep nccl`, `LD_LIBRARY_PATH`)"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=(
            "undefined symbol: nccl",
            "Mismatched NCCL version",
            "different NCCL",
            "libnccl.so",
        ),
        pattern=(
            r"undefined symbol: nccl\w+|Mismatched NCCL version|libnccl\.so\S*: cannot open"
            r"|NCCL version mismatch"
        ),
        examples=("ImportError: /x/libtorch_cuda.so: undefined symbol: ncclCommRegister",),
        not_examples=("libnccl.so loaded",),
        weight=72,
        masks=("cxx-abi-undefined-symbol",),
    ),
)
