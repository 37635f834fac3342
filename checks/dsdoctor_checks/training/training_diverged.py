"""The training diverged: NaN, or overflows down to the minimum loss scale.

## Why it matters
fp16 has a narrow range. When every step overflows, the loss scale falls to its minimum. Then the
model learns nothing, or the run stops.

## What to do
Train in bf16, or lower `initial_scale_power` and the learning rate.

## References
Detected from logs only.
"""

from __future__ import annotations

from dsdoctor.api import (
    Condition,
    Level,
    Observation,
    Scope,
    Signature,
)

CONDITION = Condition(
    "training-diverged",
    id="DSD1750",
    scope=Scope.JOB,
    since="0.1",
    formerly=("fp16-overflow-or-nan",),
    names=(Observation.NOT_FINITE,),
)

HINT = "lower the learning rate and look for bad values in the data; in fp16, also lower `initial_scale_power`, or train in bf16"

#: A loss of a validation may be NaN while that of the training is finite: a mean over no labels.
OF_TRAINING = "(?<!val_)(?<!eval_)(?<!valid_)(?<!test_)"

SIGNATURES = (
    Signature(
        pattern="loss scale already at minimum|Minimum loss scale reached",
        source="deepspeed 0.14.5-0.19.8 runtime/fp16/loss_scaler.py; fairscale 0.4.13 experimental/optim/dynamic_loss_scaler.py",
        examples=(
            "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
            "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding.",
        ),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=OF_TRAINING + r"[Ll]oss['\x22]?: ?(?:nan|NaN)\b",
        source=(
            "transformers 3.0-5.23 trainer.py, which prints its record of a step; training scripts"
        ),
        examples=("{'loss': nan, 'grad_norm': 1.0}", "step 3 Loss: NaN"),
        not_examples=("loss: nano", "{'eval_loss': nan, 'eval_runtime': 1.2}"),
        level=Level.WEAK,
    ),
    Signature(
        pattern=OF_TRAINING + r"[Ll]oss ?= ?(?:nan|NaN)\b",
        source="training scripts print a loss",
        examples=("epoch 1 loss = nan", "train_loss=NaN"),
        not_examples=("loss = nanmean(rows)", "epoch 1: val_acc=0.90, val_loss=nan"),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"(?<!\bif )[Ll]oss (?:is )?(?:nan|NaN)\b",
        source="training scripts print a loss",
        examples=("step 3 loss nan", "Loss is NaN, stopping training"),
        not_examples=("loss nanmean", "2210     # if loss is nan or inf add the average"),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"(?<!\bif the )(?<!\bif )[Ll]oss (?:\w{1,12} )?(?:becomes|became|goes to|went to|turns to|turned to|changed to) (?:nan|NaN)\b",
        source="people who tell of a run",
        examples=(
            "the loss suddenly becomes nan",
            "the loss became NaN",
            "the loss goes to nan",
            "the loss went to nan",
            "the loss turns to nan",
            "the loss turned to nan",
            "Policy loss changed to nan",
        ),
        not_examples=("if the loss becomes nan", "the loss becomes nanometric"),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"grad_norm['\x22]?: nan\b|found (?:nan|NaN) in\b|(?:NaN|nan) loss\b",
        source="transformers 4.38-5.23 trainer.py, which prints its record of a step",
        examples=(
            "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1.9e-05, 'epoch': 0.02}",
            "found nan in the gradients",
            "found NaN in the gradients",
            "nan loss at step 3",
            "ERROR: NaN loss encountered",
        ),
        not_examples=("found nan insertion",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"'(?:logps|rewards)/(?:chosen|rejected)': nan\b",
        source="trl 0.4-0.24 trainer/dpo_trainer.py, orpo_trainer.py, kto_trainer.py: of each step",
        examples=(
            "{'loss': 0.0, 'learning_rate': 1e-05, 'rewards/chosen': nan, 'epoch': 0.5}",
            "{'loss': 0.0, 'logps/rejected': nan, 'logps/chosen': nan}",
            "'rewards/rejected': nan, 'epoch': 0.5}",
        ),
        not_examples=("'rewards/chosen': nanmean", "'rewards/rejected': nano"),
        level=Level.WEAK,
        message="The model gives NaN for the texts that it learns from",
    ),
    Signature(
        pattern="probability tensor contains either `?inf`?, `?nan",
        source="torch 2.13.0 libtorch_cpu.so",
        message="The model's probabilities contain NaN or infinities when a token is sampled",
        hint="try bf16 or fp32 instead of fp16, and look for NaN in the weights: a training that diverged, or a conversion or quantization that went wrong",
        examples=(
            "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0",
            "RuntimeError: probability tensor contains either inf, nan or element < 0",
        ),
    ),
    Signature(
        pattern=r"reducing loss scale to (?:0\.0\b|\d[.\d]*e-(?:0[3-9]|[1-9]\d))|Attempted loss scale: [01](?:\.0)?, (?:reducing to|but hysteresis)|gradients are (?:Nan|NaN|nan)|Fatal error: gradients are inconsistent",
        source=(
            "apex amp/scaler.py; deepspeed 0.3-0.19 runtime/fp16/loss_scaler.py; fairseq 0.6-0.12 "
            "trainer.py"
        ),
        examples=(
            "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 4.76837158203125e-07",
            "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 1, reducing to 1",
            "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 0, reducing to 0",
            "FloatingPointError: gradients are Nan/Inf",
            "Fatal error: gradients are inconsistent",
        ),
        not_examples=(
            "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
        ),
    ),
    Signature(
        pattern="became infinite or NaN",
        source="detectron2 0.1-0.6 engine/train_loop.py",
        examples=("FloatingPointError: Loss became infinite or NaN at iteration=7!",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"Function '\w+' returned nan values",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=("RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.",),
        not_examples=("'MulBackward0' returned nan values in its 0th output.",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="[Ll]oss is inf",
        source="training scripts print a loss",
        examples=("Loss is inf",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="is non-finite, so it cannot be clipped",
        source="torch 2.13.0 nn/utils/clip_grad.py, include/torch/csrc/api/include/torch/nn/utils/clip_grad.h",
        examples=(
            "RuntimeError: The total norm of order 2.0 for gradients from `parameters` is non-finite, so it cannot be clipped.",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"(?<!val_l)(?<!eval_l)(?<!valid_l)(?<!test_l)oss(?:=| = | is |: )NaN\b",
        source="training scripts print a loss",
        examples=(
            "Epoch 1: loss=NaN",
            "oss = NaN",
            "oss is NaN",
            "oss: NaN",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"Loss nan\b",
        source="training scripts print a loss",
        examples=("Loss nan",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"[Ll]oss: inf\b",
        source="training scripts print a loss",
        examples=("Loss: inf",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="nan iterations: +[1-9]",
        source="megatron_core 0.4-0.16 training/training.py",
        examples=("nan iterations: 1",),
        not_examples=("number of skipped iterations:   0 | number of nan iterations:   0",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"\bgrad norm: nan\b|for nan or inf in \w+",
        source="Megatron-LM 2-3, megatron_core 0.4-0.16 training/training.py",
        examples=(
            " iteration 12/ 500 | loss scale: 1.0 | grad norm: nan | number of skipped iterations: 0",
            "Skipping backward and optimizer step for nan or inf in forwarding metrics/loss!",
        ),
        not_examples=("for nan or inf in  ",),
        level=Level.WEAK,
    ),
)
