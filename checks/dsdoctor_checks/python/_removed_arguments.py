"""Arguments that releases of transformers and trl no longer take, as the `TypeError` shows them.

Each row was read in the wheels of the release and of the one before it, 2026-11-29: transformers
training_args.py and trainer.py, trl trainer/sft_config.py, sft_trainer.py and dpo_trainer.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dsdoctor.api import Level, Signature


class Removed(NamedTuple):
    """An argument that a class lost.

    Attributes:
        package: what pip calls the package.
        release: the first release without it.
        classes: the class, or a pattern of classes.
        examples: one such class for each alternative of the pattern.
        argument: the argument.
        instead: what own code writes in its place.
    """

    package: str
    release: str
    classes: str
    examples: tuple[str, ...]
    argument: str
    instead: str


_ARGUMENTS = r"(?:Seq2Seq)?TrainingArguments"
_TRAINER = r"(?:Seq2Seq)?Trainer"
_OF_TRL = r"(?:SFT|DPO)Trainer"
REMOVED = (
    *(
        Removed("transformers", release, _ARGUMENTS, ("TrainingArguments",), argument, instead)
        for release, argument, instead in (
            ("4.51", "evaluation_strategy", "write `eval_strategy`"),
            ("5.0", "no_cuda", "write `use_cpu`"),
            ("5.0", "overwrite_output_dir", "remove it"),
            ("5.0", "per_gpu_train_batch_size", "write `per_device_train_batch_size`"),
            ("5.0", "save_safetensors", "remove it"),
            ("5.2", "group_by_length", 'write `train_sampling_strategy="group_by_length"`'),
            ("5.15", "warmup_ratio", "pass the ratio as `warmup_steps`"),
            ("5.15", "logging_dir", "remove it, and set the variable `TENSORBOARD_LOGGING_DIR`"),
        )
    ),
    Removed("transformers", "5.0", _TRAINER, ("Trainer",), "tokenizer", "write `processing_class`"),
    Removed("trl", "0.16", _OF_TRL, ("SFTTrainer", "DPOTrainer"), "tokenizer", "write `processing_class`"),
    Removed("trl", "0.20", "SFTConfig", ("SFTConfig",), "max_seq_length", "write `max_length`"),
    *(
        Removed("trl", "0.13", "SFTTrainer", ("SFTTrainer",), argument,
                f"pass `{argument}` to `SFTConfig`, which is the trainer's `args`")
        for argument in ("dataset_text_field", "packing")
    ),
    Removed("trl", "0.13", "SFTTrainer", ("SFTTrainer",), "max_seq_length",
            "pass it to `SFTConfig`, the trainer's `args`; since trl 0.20 it is called `max_length`"),
    Removed("trl", "0.13", "DPOTrainer", ("DPOTrainer",), "beta",
            "pass `beta` to `DPOConfig`, which is the trainer's `args`"),
)  # fmt: skip


def signatures() -> Iterator[Signature]:
    """One for each argument."""
    for row in REMOVED:
        say = f"__init__() got an unexpected keyword argument '{row.argument}'"
        yield Signature(
            pattern=rf"\b{row.classes}\.__init__\(\) got an unexpected keyword argument"
            f" '{row.argument}'",
            source=f"{row.package} {row.release}; python 3.10-3.14 Python/ceval.c",
            level=Level.STRONG,
            message=f"`{row.examples[0]}` of {row.package} {row.release} and newer has no argument"
            f" `{row.argument}`",
            hint=f"{row.instead}; or run `python -m pip install '{row.package}<{row.release}'`",
            examples=tuple(f"TypeError: {example}.{say}" for example in row.examples),
            not_examples=(f"TypeError: Our{row.examples[0]}.{say}",),
        )
