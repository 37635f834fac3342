"""How `zero3-empty-weights` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "zero3-empty-weights"
TITLE = "weights are loaded outside the ZeRO-3 context: size 0"
HINT = "load with `deepspeed.zero.GatheredParameters`, save with `stage3_gather_16bit_weights_on_model_save`, or use `zero_to_fp32.py`"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=("torch.Size([0])", "vec (0)", "must be 2-D"),
        pattern=r"torch\.Size\(\[0\]\)|vec \(0\)|'weight' must be 2-D",
        examples=(
            "size mismatch for w: copying a param with shape torch.Size([0]) from checkpoint",
            "RuntimeError: 'weight' must be 2-D",
        ),
        not_examples=("torch.Size([10])",),
        weight=72,
        masks=("checkpoint-mismatch",),
    ),
)
