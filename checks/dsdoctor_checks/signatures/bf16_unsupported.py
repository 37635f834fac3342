"""How `bf16-unsupported` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "bf16-unsupported"
TITLE = "bf16 or tf32 is asked for on a GPU or torch build that lacks it"
HINT = (
    "set `fp16` in place of `bf16` in the config, or use a GPU of compute capability 8.0 or newer"
)
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=("support bf16", "bf16"),
        pattern=r"(?i)(?:does ?n[o']t|not|n't) support(?:ed)? bf16|bf16 (?:\S+ ){0,3}(?:is )?not supported|bfloat16 is not supported (?:on|by) (?:your|this|the)",
        examples=(
            "ValueError: this setup does not support bf16/gpu",
            "RuntimeError: bf16 is not supported on this device",
        ),
        not_examples=("bf16: true",),
        weight=70,
    ),
    Signature(
        anchor=("Bfloat16", "bfloat16", "BFloat16", "BF16", "bf16"),
        pattern=r"(?i)(?:Bfloat16 is only supported on GPUs with compute capability|type bf16 is not supported|bf16 mixed precision requires|(?:current|device|gpu|hardware|cuda)[^.]{0,60} does not support (?:bf16|bfloat16)|bfloat16 is not supported on (?:your|this|current))",
        examples=(
            "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0",
            "ValueError: type bf16 is not supported on your device.",
        ),
        not_examples=("dtype bfloat16",),
        weight=70,
    ),
    Signature(
        anchor=("tf32", "TF32"),
        pattern=r"(?i)--tf32 requires Ampere|tf32 requires (?:an )?Ampere",
        examples=("ValueError: --tf32 requires Ampere or a newer GPU arch",),
        not_examples=("tf32 enabled",),
        weight=65,
    ),
    Signature(
        anchor=("bf16 requires", "BF16 requires"),
        pattern=r"(?i)bf16 requires (?:PyTorch|torch|Ampere)",
        examples=("ValueError: bf16 requires PyTorch >= 1.10 and an Ampere GPU",),
        not_examples=("bf16 enabled",),
        weight=65,
    ),
)
