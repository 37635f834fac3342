"""How `nccl-unhandled-cuda-error` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "nccl-unhandled-cuda-error"
TITLE = "NCCL reports a CUDA failure"
HINT = "run again with `NCCL_DEBUG=INFO` and read the first WARN line"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=("unhandled cuda error", "ncclUnhandledCudaError"),
        pattern=r"unhandled cuda error|ncclUnhandledCudaError",
        examples=(
            "RuntimeError: NCCL error in: x.cpp:784, unhandled cuda error, NCCL version 2.7.8",
        ),
        not_examples=("cuda error handled",),
        weight=44,
    ),
)
