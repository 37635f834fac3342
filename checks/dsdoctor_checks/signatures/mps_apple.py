"""How `mps-apple` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "mps-apple"
TITLE = "Apple's MPS back end lacks the type or operation"
HINT = "use float32 or float16, or set `PYTORCH_ENABLE_MPS_FALLBACK=1`"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=("MPS", "mps"),
        pattern=(
            r"not supported on MPS|MPS framework doesn't support|not currently (?:supported"
            r"|implemented) (?:on|for) the MPS|MPS backend out of memory"
            r"|(?i:bf16|bfloat16|float64).{0,40}\bMPS\b|(?:not|n't) (?:available"
            r"|supported|implemented).{0,40}\bMPS\b"
        ),
        examples=(
            "TypeError: BFloat16 is not supported on MPS",
            "NotImplementedError: The operator 'x' is not currently implemented for the MPS device.",
        ),
        not_examples=("device: mps",),
        weight=72,
        masks=("bf16-unsupported",),
    ),
)
