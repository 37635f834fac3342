"""Two ranks use one GPU.

## Why it matters
Each rank needs a GPU of its own; two on one make NCCL refuse to start.

## What to do
Call `torch.cuda.set_device(local_rank)` before the first collective.

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("nccl-duplicate-gpu", id="DSD850", scope=Scope.JOB, since="0.1")

HINT = "call `torch.cuda.set_device(local_rank)` before the first collective"

SIGNATURES = (
    Signature(
        pattern="Duplicate GPU detected",
        examples=(
            "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000",
            "NCCL WARN Duplicate GPU detected : rank 7 and rank 0 both on CUDA device 3d000",
        ),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern="NCCL [Ee]rror.{0,160}invalid usage|ncclInvalidUsage",
        examples=(
            "RuntimeError: NCCL error in: x/ProcessGroupNCCL.cpp:911, invalid usage, NCCL version 2.7.8",
            "ncclInvalidUsage: This usually reflects invalid usage of NCCL library (such as too many async ops, too many collectives at once, mixing streams in a group, etc).",
        ),
        not_examples=("invalid usage of argument --x",),
        level=Level.WEAK,
    ),
)
