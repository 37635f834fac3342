"""Two ranks use the same GPU.

## Why it matters
Each rank needs its own GPU. NCCL refuses to start if two ranks use the same one.

## What to do
Call `torch.cuda.set_device(local_rank)` before the first collective, and start at most as many ranks per
node as it has GPUs.

## References
Detected from logs only.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("nccl-duplicate-gpu", id="DSD850", scope=Scope.JOB, since="0.1")

HINT = "call `torch.cuda.set_device(local_rank)` before the first collective"

SIGNATURES = (
    Signature(
        pattern="Duplicate GPU detected",
        source="nccl 2.21.5 libnccl.so.2",
        examples=(
            "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000",
            "NCCL WARN Duplicate GPU detected : rank 7 and rank 0 both on CUDA device 3d000",
        ),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
)
