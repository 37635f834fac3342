"""How `invalid-device-ordinal` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "invalid-device-ordinal"
TITLE = "more processes, or a higher device number, than GPUs are visible"
HINT = "start as many processes as GPUs are visible (`nvidia-smi -L`)"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=("invalid device ordinal", "nvalid device id", "cudaErrorInvalidDevice"),
        pattern=r"invalid device ordinal|Invalid device id|cudaErrorInvalidDevice\b",
        examples=(
            "RuntimeError: CUDA error: invalid device ordinal",
            "AssertionError: Invalid device id",
        ),
        not_examples=("device ordinal 1",),
        weight=70,
        masks=("nccl-timeout-watchdog", "no-gpu-visible"),
    ),
    Signature(
        anchor=("but only found", "nproc_per_node"),
        pattern=(
            r"requires? \d+ GPUs?.{0,40}but only|(?:GPUs? available|num_gpus).{0,40}(?:less than"
            r"|<).{0,40}(?:nproc|world)"
        ),
        examples=("AssertionError: it requires 8 GPUs but only found 4",),
        not_examples=("nproc_per_node=8",),
        weight=50,
    ),
)
