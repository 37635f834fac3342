"""Another NCCL is loaded than torch was built with.

## Why it matters
torch calls functions of the NCCL that it was built with; an older one on the path lacks them.

## What to do
Remove the second NCCL (`pip list | grep nccl`, `LD_LIBRARY_PATH`).

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition("nccl-version-mismatch", id="DSD855", scope=Scope.JOB, since="0.1")

HINT = "remove the second NCCL (`pip list | grep nccl`, `LD_LIBRARY_PATH`)"

SIGNATURES = (
    Signature(
        anchor=(
            "undefined symbol: nccl",
            "Mismatched NCCL version",
            "NCCL version mismatch",
            "NCCL library is",
            "too old version of NCCL",
            "libnccl.so",
        ),
        pattern=(
            r"undefined symbol: nccl\w+|Mismatched NCCL version|libnccl\.so\S*: cannot open"
            r"|NCCL version mismatch|NCCL library is (?:too old|not backwards compatible)|compiled with too old version of NCCL"
        ),
        examples=(
            "ImportError: /x/libtorch_cuda.so: undefined symbol: ncclCommRegister",
            "NCCL WARN NCCL version mismatch with remote peer 10.0.0.2<1> (local: 21805, remote 22005)",
            "NCCL WARN Mismatched NCCL version detected : rank 0 version 21403 rank 1 version 21005",
        ),
        not_examples=("libnccl.so loaded",),
        weight=72,
        masks=("cxx-abi-undefined-symbol",),
    ),
)
