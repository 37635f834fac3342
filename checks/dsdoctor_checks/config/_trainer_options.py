"""Values that both the DeepSpeed config and the options of transformers' Trainer set.

transformers compares them when the Trainer starts, and stops if they differ
(transformers 4.28-5.24 integrations/deepspeed.py, `HfTrainerDeepSpeedConfig`, read 2026-11-23, and
held against it option by option on 2026-11-29).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from dsdoctor.api import DsConfig, RunNeeds, whole

from ._tables import BATCH_KEYS

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
_BETAS = ("adam_beta1", "adam_beta2")
#: Each 16-bit type and the one that excludes it.
_PRECISIONS = {"fp16": "bf16", "bf16": "fp16"}
#: What `TrainingArguments` holds for an option that is not passed (transformers 4.28-5.24
#: training_args.py, read 2026-11-29).
_DEFAULTS = {
    "per_device_train_batch_size": "8",
    "gradient_accumulation_steps": "1",
    "max_grad_norm": "1.0",
    "learning_rate": "5e-5",
    "adam_beta1": "0.9",
    "adam_beta2": "0.999",
    "adam_epsilon": "1e-8",
    "weight_decay": "0.0",
    "fp16": "false",
    "bf16": "false",
}
#: How transformers spells a boolean of its command line; the bare option is true.
_BOOLEANS = {
    **dict.fromkeys(("", "yes", "true", "t", "y", "1"), True),
    **dict.fromkeys(("no", "false", "f", "n", "0"), False),
}


class Conflict(msgspec.Struct, frozen=True):
    """A key of the config whose value is not that of the options.

    Attributes:
        key: the key, with dots.
        value: what the config sets; None = nothing.
        given: what the command line passes, as it stands there.
        ranks: number of ranks by which transformers multiplies it; 0 = by none.
        missing: the option that is not passed, so that its default counts; "" = it is passed.
        in_yaml: the trainer's YAML sets it, not the command line.
    """

    key: str
    value: Any
    given: str
    ranks: int = 0
    missing: str = ""
    in_yaml: bool = False

    def options(self) -> list[str]:
        """The names of the options in `given`."""
        return [word[2:] for word in self.given.split() if word.startswith("--")]


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


def conflicts(
    config: DsConfig, words: Sequence[str], world: int | None, run: RunNeeds
) -> Iterator[Conflict]:
    """Options of a script that uses transformers' Trainer and that contradict the config.

    Args:
        config: the config.
        words: the script's arguments.
        world: number of ranks; None = not known.
        run: the request, with what a trainer's YAML sets.
    """
    typed = options_of(words)
    passed = {**run.trainer_values, **typed}
    found = list(_conflicts(config, passed, world))
    for conflict in found:
        in_yaml = not typed.keys() & set(conflict.options())
        yield msgspec.structs.replace(conflict, in_yaml=in_yaml)
    # a variable of the shell may hold further options
    if (
        not run.training_arguments
        or "deepspeed" not in passed
        or any("$" in word for word in words)
    ):
        return
    keys = {conflict.key for conflict in found}
    for conflict in _conflicts(config, {**_DEFAULTS, **passed}, world):
        missing = next((name for name in conflict.options() if name not in passed), "")
        if conflict.key not in keys and missing:
            yield msgspec.structs.replace(conflict, missing=missing)


def _conflicts(
    config: DsConfig, options: Mapping[str, str], world: int | None
) -> Iterator[Conflict]:
    searched = _BOOLEANS.get(options.get("auto_find_batch_size", "false").lower()) is not False
    for key, option in NUMBERS.items():
        value, given = _value(config, key), _number(options.get(option, ""))
        if key == BATCH_KEYS[1] and searched:
            continue  # transformers does not compare what it will change
        if value is not None and given is not None and given != value:
            yield Conflict(key, value, f"--{option} {options[option]}")
    yield from _betas(config, options)
    yield from _warmup(config, options)
    yield from _precision(config, options)
    if not searched:
        yield from _whole_batch(config, options, world)
    yield from _one_step(config, options)


def _betas(config: DsConfig, options: Mapping[str, str]) -> Iterator[Conflict]:
    key = "optimizer.params.betas"
    betas = config.get(key)
    if not isinstance(betas, list):
        return
    for place, option in enumerate(_BETAS):
        given = _number(options.get(option, ""))
        if given is not None and [given] != betas[place : place + 1]:
            yield Conflict(key, betas, f"--{option} {options[option]}")
            return


def _warmup(config: DsConfig, options: Mapping[str, str]) -> Iterator[Conflict]:
    """Steps that are an integer; a ratio needs the number of steps of the training."""
    key = "scheduler.params.warmup_num_steps"
    value, given = _value(config, key), whole(options.get("warmup_steps", ""))
    if value is None or given is None or (given == 0 and "warmup_ratio" in options):
        return
    # releases differ on whether 0 becomes 1
    if value != given and (given > 0 or value > 1):
        yield Conflict(key, value, f"--warmup_steps {given}")


def _precision(config: DsConfig, options: Mapping[str, str]) -> Iterator[Conflict]:
    for kind, other in _PRECISIONS.items():
        value = config.get(f"{kind}.enabled")
        switched = _switched(options, kind)
        by = next((name for name in (kind, f"{kind}_full_eval") if name in options), "")
        if switched is None and _switched(options, other):
            switched, by = False, other  # transformers refuses both at once
        if isinstance(value, bool) and switched is not None and value != switched:
            yield Conflict(f"{kind}.enabled", value, f"--{by} {options.get(by, '')}".rstrip())


def _switched(options: Mapping[str, str], kind: str) -> bool | None:
    """Whether the options switch on a 16-bit type; None if they do not say."""
    said = [
        _BOOLEANS.get(options[name].lower())
        for name in (kind, f"{kind}_full_eval")
        if name in options
    ]
    return True if True in said else False if False in said else None


def _whole_batch(
    config: DsConfig, options: Mapping[str, str], world: int | None
) -> Iterator[Conflict]:
    """`train_batch_size` against the product that transformers calculates."""
    parts = ("per_device_train_batch_size", "gradient_accumulation_steps")
    value, numbers = _value(config, "train_batch_size"), [whole(options.get(p, "")) for p in parts]
    if value is None or world is None or None in numbers:
        return
    micro, steps = (number or 0 for number in numbers)
    if value != micro * steps * world:
        said = " ".join(f"--{part} {options[part]}" for part in parts)
        yield Conflict("train_batch_size", value, said, world)


def _one_step(config: DsConfig, options: Mapping[str, str]) -> Iterator[Conflict]:
    """Accumulation that only the option sets, beside a whole batch that includes it.

    accelerate (0.12 to 1.15 utils/dataclasses.py) adds a 1 to a config without the key.
    """
    key, held = "gradient_accumulation_steps", config.parsed or {}
    steps = whole(options.get(key, ""))
    given = all(held.get(name) is not None for name in BATCH_KEYS[:2])
    if given and key not in held and steps not in (None, 1):
        yield Conflict(key, None, f"--{key} {steps}")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # a variable of the shell, or an option that has no value here
        return None


def _value(config: DsConfig, key: str) -> float | None:
    """The number at this key; None if there is no number."""
    value = config.get(key)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
