"""Options of the training script in a command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

#: Output options of trainers: Hugging Face, Lightning, Megatron, NeMo, DeepSpeed's examples …
OUTPUT = (
    "output_dir", "save_dir", "save", "checkpoint_dir", "ckpt_dir", "save_path", "checkpoint_path",
    "output_path", "out_dir", "default_root_dir", "exp_dir", "work_dir", "results_dir",
    "logging_dir", "log_dir",
)  # fmt: skip


def option(words: Sequence[str], names: Sequence[str]) -> str | None:
    """The value of the first of these options in a command; "" = no value, None = no such option.

    >>> option(["train.py", "--model-name=x", "--bf16"], ["model_name"])
    'x'
    >>> option(["train.py", "--max_length", "512"], ["max_length"])
    '512'
    """
    for place, word in enumerate(words):
        name, _, value = word.partition("=")
        if name.startswith("-") and name.lstrip("-").replace("-", "_") in names:
            following = words[place + 1] if place + 1 < len(words) else ""
            return value or ("" if following.startswith("-") else following)
    return None


def output_folders(words: Sequence[str]) -> Iterator[Path]:
    """Existing folders in or below which a command writes, according to its options."""
    for name in OUTPUT:
        if value := option(words, (name,)):
            path = Path(value).expanduser().absolute()
            yield next((one for one in (path, *path.parents) if one.is_dir()), Path("/"))
