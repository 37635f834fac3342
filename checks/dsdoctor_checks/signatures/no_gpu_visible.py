"""How `no-gpu-visible` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "no-gpu-visible"
TITLE = "no GPU is seen"
HINT = "check `nvidia-smi -L` and `CUDA_VISIBLE_DEVICES`"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=(
            "No CUDA GPUs are available",
            "Found no NVIDIA driver",
            "no CUDA-capable device",
            "no GPU resources available",
            "No GPU found",
            "No CUDA device",
            "cudaErrorNoDevice",
            "Torch did not find cuda",
            "AMP or APEX",
            "runtime error (38)",
            "CUDA is not available",
        ),
        pattern=(
            r"No CUDA GPUs are available|Found no NVIDIA driver|no CUDA-capable device"
            r"|no GPU resources available|No (?:GPU|CUDA devices?) (?:found"
            r"|available)|cudaErrorNoDevice|AMP or APEX \(`--fp16`\).{0,60}can only be used on CUDA"
            r"|(?:Error|error|Exception): .{0,40}CUDA is not available"
        ),
        examples=(
            "RuntimeError: No CUDA GPUs are available",
            "RuntimeError: Found no NVIDIA driver on your system.",
        ),
        not_examples=("Torch did not find cuda available",),
        weight=62,
    ),
)
