"""Values that both the DeepSpeed config and the options of transformers' Trainer set.

transformers compares them when the Trainer starts, and stops if they differ
(transformers 4.28-5.23 integrations/deepspeed.py, `HfTrainerDeepSpeedConfig`, read 2026-11-23).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from dsdoctor.api import DsConfig

#: Key of the config to the option that transformers compares with it, for each kind of value.
NUMBERS = {
    "train_micro_batch_size_per_gpu": "per_device_train_batch_size",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "gradient_clipping": "max_grad_norm",
    "optimizer.params.lr": "learning_rate",
    "optimizer.params.eps": "adam_epsilon",
    "optimizer.params.weight_decay": "weight_decay",
    "scheduler.params.warmup_max_lr": "learning_rate",
}


class Conflict(msgspec.Struct, frozen=True):
    """A key of the config whose value is not that of the option.

    Attributes:
        key: the key, with dots.
        value: what the config sets.
        option: the option, without dashes.
        given: what the command line passes.
    """

    key: str
    value: float
    option: str
    given: str


def options_of(words: Sequence[str]) -> dict[str, str]:
    """Options of a script, without dashes; of an option that is repeated, the last counts.

    >>> options_of(["--bf16", "--learning-rate", "2e-5", "--max_grad_norm=1"])
    {'bf16': '', 'learning_rate': '2e-5', 'max_grad_norm': '1'}
    """
    found: dict[str, str] = {}
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if not name.startswith("--"):
            continue
        following = words[place + 1] if place + 1 < len(words) else ""
        if not equals and not following.startswith("--"):
            value = following
        found[name[2:].replace("-", "_")] = value
    return found


def conflicts(config: DsConfig, words: Sequence[str]) -> Iterator[Conflict]:
    """Options of a script that uses transformers' Trainer and that contradict the config."""
    options = options_of(words)
    for key, option in NUMBERS.items():
        value = _value(config.parsed, key)
        given = options.get(option, "")
        try:
            differs = value is not None and float(given) != value
        except ValueError:  # a variable of the shell, or an option that has no value here
            continue
        if differs and value is not None:
            yield Conflict(key, value, option, given)


def _value(parsed: Any, key: str) -> float | None:
    """The number at this key; None if there is no number."""
    for part in key.split("."):
        parsed = parsed.get(part) if isinstance(parsed, dict) else None
    return parsed if isinstance(parsed, (int, float)) and not isinstance(parsed, bool) else None
