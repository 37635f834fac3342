"""How `gpu-busy-exclusive-mode` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "gpu-busy-exclusive-mode"
TITLE = "the GPU is held by another process"
HINT = "end the other process, or set the compute mode back: `nvidia-smi -c 0`"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=(
            "busy or unavailable",
            "cudaErrorDevicesUnavailable",
            "CUDA_ERROR_DEVICE_UNAVAILABLE",
            "exclusive",
        ),
        pattern=r"(?i)devices?(?:\(s\))? (?:is|are|is/are) busy or unavailable|DevicesUnavailable|DEVICE_UNAVAILABLE|runtime error \(46\)|in use by another (?:process|client).{0,40}exclusive",
        examples=(
            "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable",
            "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
        ),
        not_examples=("exclusive run",),
        weight=74,
    ),
)
