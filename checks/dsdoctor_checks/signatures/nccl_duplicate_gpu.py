"""How `nccl-duplicate-gpu` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "nccl-duplicate-gpu"
TITLE = "two ranks use one GPU"
HINT = "call `torch.cuda.set_device(local_rank)` before the first collective"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor="Duplicate GPU detected",
        pattern=r"Duplicate GPU detected",
        examples=("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000",),
        not_examples=("GPU detected",),
        weight=76,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
)
