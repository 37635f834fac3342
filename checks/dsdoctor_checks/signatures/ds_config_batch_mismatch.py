"""How `ds-config-batch-mismatch` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "ds-config-batch-mismatch"
TITLE = "batch sizes, accumulation and world size of the config disagree"
HINT = "set `train_batch_size` = micro batch * accumulation * world size, or leave one of the three out"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=("batch related parameters", "train_batch_size is not equal"),
        pattern=r"Check batch related parameters|train_batch_size is not equal",
        examples=(
            "AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size 8 != 1 * 1 * 4",
        ),
        not_examples=("batch related parameters printed",),
        weight=70,
    ),
    Signature(
        anchor=("has to be greater than 0",),
        pattern=(
            r"(?:Train batch size|Micro batch size per gpu|Gradient accumulation steps): \S+ has to be greater than 0"
        ),
        examples=("AssertionError: Micro batch size per gpu: 0 has to be greater than 0",),
        not_examples=("x has to be greater than 0",),
        weight=70,
    ),
    Signature(
        anchor="mismatch TrainingArguments",
        pattern=r"mismatch TrainingArguments",
        examples=(
            "ValueError: Please correct the following DeepSpeed config values that mismatch TrainingArguments values:",
        ),
        not_examples=("TrainingArguments",),
        weight=66,
    ),
    Signature(
        anchor=("train_batch_size or train_micro_batch_size", "Either train_batch_size"),
        pattern=r"(?:Either )?train_batch_size or train_micro_batch_size_per_gpu needs",
        examples=(
            "AssertionError: Either train_batch_size or train_micro_batch_size_per_gpu needs to be provided",
        ),
        not_examples=("train_batch_size 8",),
        weight=66,
    ),
    Signature(
        anchor=("- ds ",),
        pattern=r"- ds \w+=\S+ vs hf \w+",
        examples=("- ds train_batch_size=8 vs hf train_batch_size (calculated)=4",),
        not_examples=("- ds report",),
        weight=64,
    ),
    Signature(
        anchor=("is not divisible by", "not divisible"),
        pattern=r"(?i)(?:global|train)[ _]batch[ _]size.{0,60}(?:not|n't) (?:be )?divisible|batch size .{0,60}divisible by .{0,60}(?:world|parallel)",
        examples=(
            "AssertionError: global batch size (8) is not divisible by micro batch size (3) times data parallel size (4)",
        ),
        not_examples=("hidden size is not divisible by heads",),
        weight=55,
    ),
)
