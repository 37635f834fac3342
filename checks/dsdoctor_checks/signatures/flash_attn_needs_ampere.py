"""How `flash-attn-needs-ampere` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "flash-attn-needs-ampere"
TITLE = "FlashAttention-2 is used on a GPU older than Ampere"
HINT = 'use `attn_implementation="sdpa"`, or a GPU of compute capability 8.0 or newer'
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=("Ampere GPUs or newer", "FlashAttention"),
        pattern=(
            r"FlashAttention(?:-2)? (?:only supports|requires|is only supported on"
            r"|forward only supports|backward (?:for|only)).{0,60}(?:Ampere"
            r"|Turing|sm8|A100|capability|head dim)"
        ),
        examples=("RuntimeError: FlashAttention only supports Ampere GPUs or newer.",),
        not_examples=("FlashAttention enabled",),
        weight=72,
        masks=("gpu-arch-unsupported",),
    ),
)
