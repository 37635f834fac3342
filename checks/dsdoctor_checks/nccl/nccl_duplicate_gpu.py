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
)
