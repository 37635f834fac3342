"""Weights are loaded outside the ZeRO-3 context: size 0.

## Why it matters
ZeRO-3 cuts parameters up; outside its context each has size 0, so loading or saving them there
meets empty tensors.

## What to do
Load with `deepspeed.zero.GatheredParameters`, save with
`stage3_gather_16bit_weights_on_model_save`, or use `zero_to_fp32.py`.

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition("zero3-empty-weights", id="DSD1751", scope=Scope.JOB, since="0.1")

HINT = "load with `deepspeed.zero.GatheredParameters`, save with `stage3_gather_16bit_weights_on_model_save`, or use `zero_to_fp32.py`"

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
