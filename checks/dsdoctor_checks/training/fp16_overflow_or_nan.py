"""The training diverges: overflow down to the least loss scale, or NaN.

## Why it matters
fp16 covers a narrow range. When every step overflows, the loss scale falls to its minimum and the
run learns nothing, or stops.

## What to do
Train in bf16, or lower `initial_scale_power` and the learning rate.

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition("fp16-overflow-or-nan", id="DSD1750", scope=Scope.JOB, since="0.1")

HINT = "train in bf16, or lower `initial_scale_power` and the learning rate"

SIGNATURES = (
    Signature(
        anchor=("loss scale already at minimum", "Minimum loss scale reached"),
        pattern=r"loss scale already at minimum|Minimum loss scale reached",
        examples=(
            "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
            "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding.",
        ),
        not_examples=("loss scale 65536",),
        weight=72,
    ),
    Signature(
        anchor=(
            "loss nan",
            "loss':nan",
            "loss= nan",
            "loss =nan",
            "loss': nan",
            "loss: nan",
            "loss=nan",
            "loss = nan",
            "loss is nan",
            "Loss is nan",
            "loss NaN",
            "grad_norm': nan",
            "found NaN",
            "Found NaN",
            "NaN loss",
            "grad_norm: nan",
            "loss:nan",
        ),
        pattern=r"(?i)loss(?:['\x22]?: ?| ?= ?| is | )nan\b|grad_norm['\x22]?: nan|found nan in|nan loss",
        examples=(
            "{'loss': nan, 'grad_norm': 1.0}",
            "step 3 loss nan",
            "epoch 1 loss = nan",
            "Loss is nan, stopping training",
        ),
        not_examples=(
            "{'loss': 2.1}",
            "the cleaner of the data set found NaN rows: 0",
        ),
        weight=40,
    ),
    Signature(
        anchor="probability tensor contains",
        pattern=r"probability tensor contains either `?inf`?, `?nan",
        examples=(
            "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0",
            "RuntimeError: probability tensor contains either inf, nan or element < 0",
        ),
        not_examples=(
            "ValueError: probability must be between 0 and 1",
            "every row of the probability tensor contains 32000 values",
        ),
        weight=50,
    ),
    Signature(
        anchor=("loss scale", "float division by zero", "gradients are", "Nan/Inf"),
        pattern=(
            r"reducing loss scale to (?:0\.0\b|\d[.\d]*e-(?:0[3-9]"
            r"|[1-9]\d))|Attempted loss scale: 1(?:\.0)?, (?:reducing to"
            r"|but hysteresis)|gradients are (?:Nan|NaN|nan)"
            r"|Fatal error: gradients are inconsistent"
        ),
        examples=(
            "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 4.76837158203125e-07",
            "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 1, reducing to 1",
            "FloatingPointError: gradients are Nan/Inf",
        ),
        not_examples=(
            "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
            "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
        ),
        weight=50,
    ),
    Signature(
        anchor=(
            "infinite or NaN",
            "returned nan values",
            "Loss is inf",
            "loss is inf",
            "is non-finite, so it cannot be clipped",
            "at::Half without overflow",
            "oss=NaN",
            "Loss nan",
            "oss is NaN",
            "oss: NaN",
            "oss = NaN",
            "oss: inf",
            "nan iterations:",
        ),
        pattern=r"became infinite or NaN|Function '\w+' returned nan values|[Ll]oss is inf|is non-finite, so it cannot be clipped|at::Half without overflow|oss(?:=| = | is |: )NaN\b|Loss nan\b|[Ll]oss: inf\b|nan iterations: +[1-9]",
        examples=(
            "FloatingPointError: Loss became infinite or NaN at iteration=7!",
            "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.",
            "RuntimeError: The total norm of order 2.0 for gradients from `parameters` is non-finite, so it cannot be clipped.",
            "Epoch 1: loss=NaN",
        ),
        not_examples=(
            "number of skipped iterations:   0 | number of nan iterations:   0",
            "skip rows in which a value is infinite or NaN",
        ),
        weight=40,
    ),
    Signature(
        anchor=("grad norm: nan", "nan or inf in"),
        pattern=r"\bgrad norm: nan\b|for nan or inf in \w+",
        examples=(
            " iteration 12/ 500 | loss scale: 1.0 | grad norm: nan | number of skipped iterations: 0",
            "Skipping backward and optimizer step for nan or inf in forwarding metrics/loss!",
        ),
        not_examples=("the filter drops rows with nan or inf in a column",),
        weight=40,
    ),
)
