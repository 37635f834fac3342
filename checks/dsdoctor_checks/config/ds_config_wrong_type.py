"""A value in the DeepSpeed config has the wrong type or is out of range.

## Why it matters
DeepSpeed validates some sections when it reads the config and names the field in its error. It does
not validate top-level values: `"1.0"` stays a string until a step divides by it, `"false"` counts as
true, and an unquoted `True,` becomes a string that includes the comma.

## What to do
Write numbers and booleans without quotes, and booleans in lower case.

## References
deepspeed/runtime/config.py, deepspeed/runtime/zero/config.py,
deepspeed/runtime/zero/offload_config.py, deepspeed/runtime/precision_config.py,
https://hjson.github.io/syntax.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Condition,
    DeepSpeedInstall,
    DsConfig,
    Finding,
    Level,
    Missing,
    RunNeeds,
    Scope,
    Signature,
    check,
    fail,
    warn,
    whole,
)
from dsdoctor_checks._util import at_least

from ._choices import refused_words
from ._kinds import refused_kinds
from ._repairable import offered
from ._tables import BATCH_KEYS, enabled, is_number, leaves, stage_of
from ._truths import unchecked_booleans

CONDITION = Condition(
    "ds-config-wrong-type", id="DSD1307", scope=Scope.JOB, since="0.1", fixes=("repair-ds-config",)
)

_NUMBERS = (
    "gradient_clipping",
    "gradient_predivide_factor",
    "optimizer.params.lr",
    "optimizer.params.eps",
    "optimizer.params.weight_decay",
)
#: What a boolean in quotes may say; DeepSpeed takes it as meant.
_MEANS_TRUE = frozenset({"true", "yes", "on", "1"})
#: What reads the config before DeepSpeed: it sets `steps_per_print`, and fills in "auto".
_TRAINERS = frozenset({"hf", "accelerate"})
_STAGES = (0, 1, 2, 3)
_DEVICES = ("none", "cpu", "nvme")


_OBJECT = "an object in braces"
_REJECTED = "DeepSpeed rejects the config"
_VALIDATED = "`ValidationError` when the config is read"
#: Sections that people switch on with `true`, and what DeepSpeed takes in its place.
_WHEN_TRUE = {
    "fp16": '{"enabled": true}',
    "bf16": '{"enabled": true}',
    "offload_param": '{"device": "cpu"}',
    "offload_optimizer": '{"device": "cpu"}',
}
#: A number, in a string that only has to lose its quotes.
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?(?:e[+-]?\d{1,3})?")


def _advice(key: str, value: object, expected: str) -> str:
    """What to write instead: the value itself where only its form is wrong.

    >>> _advice("fp16", True, _OBJECT), _advice("bf16", False, _OBJECT)
    ('write `"fp16": {"enabled": true}`', 'remove `bf16`, which is then disabled')
    >>> _advice("gradient_clipping", "1.0", "a number")
    'write `"gradient_clipping": 1.0`, without quotes'
    >>> _advice("zero_optimization.stage", 4, "0, 1, 2 or 3")
    'set `zero_optimization.stage` to 0, 1, 2 or 3'
    """
    name = key.rpartition(".")[2]
    if expected.startswith("absent"):
        return f"remove `{key}`"
    if expected == _OBJECT and name in _WHEN_TRUE:
        if value is True:
            return f'write `"{name}": {_WHEN_TRUE[name]}`'
        if value is False:
            return f"remove `{key}`, which is then disabled"
    text = value.strip().lower() if isinstance(value, str) else ""
    if text in ("true", "false") and expected.startswith("`true`"):
        return f'write `"{name}": {text}`, without quotes'
    if _NUMBER.fullmatch(text) and (
        expected == "a number" or (expected.startswith("an integer") and float(text).is_integer())
    ):
        return f'write `"{name}": {text}`, without quotes'
    return f"set `{key}` to {expected}"


def _wrong_value(
    config: DsConfig, key: str, expected: str, effect: str, *, harmless: bool = False
) -> Finding:
    value = config.get(key)
    return (warn if harmless else fail)(
        f"{config.named(key)} is {json.dumps(value)}, but it must be {expected}",
        effect=effect,
        hint=_advice(key, value, expected),
        key=key,
        line=config.lines.get(key),
        value=value,
    )


#: Release that rejects `warmup_num_steps` of 0 (lr_schedules.py of the 0.19.3 sdist, 2026-11-22).
_WARMUP_SINCE = "0.19.3"
#: Release that rejects these values (precision_config.py of the 0.19.3 sdist, 2026-11-22).
_SCALE_SINCE = "0.19.3"
#: This many values in capitals are what a script fills in, not typos.
_MANY = 3
_PLACEHOLDER = re.compile(r"\$\{\w+\}|[A-Z][A-Za-z0-9]*_[A-Za-z0-9_]+|[A-Z][A-Z0-9]{3,}")


#: Numbers of steps that a scheduler checks, with the release that began to.
_STEPS = {
    "LRRangeTest": ("lr_range_test_step_size", "0.19.4"),
    "OneCycle": ("cycle_first_step_size", "0.19.4"),
    "WarmupLR": ("warmup_num_steps", _WARMUP_SINCE),
    "WarmupDecayLR": ("warmup_num_steps", _WARMUP_SINCE),
    "WarmupCosineLR": ("warmup_num_steps", _WARMUP_SINCE),
}


def _steps(config: DsConfig, deepspeed: DeepSpeedInstall | Missing) -> Iterator[Finding]:
    name, since = _STEPS.get(str(config.get("scheduler.type", "")), ("", ""))
    key = f"scheduler.params.{name}"
    value = config.get(key)
    strict = isinstance(deepspeed, Missing) or at_least(deepspeed.version, since)
    fits = _is_whole(value) or (name.startswith("cycle") and is_number(value))
    if name and strict and _is_given(config, key, value) and not (fits and value > 0):
        effect = "`ValueError` when the engine creates the scheduler"
        yield _wrong_value(config, key, "an integer above 0", effect)


def _loss_scale(config: DsConfig, deepspeed: DeepSpeedInstall | Missing) -> Iterator[Finding]:
    """The floor and the window of a dynamic loss scale."""
    fp16 = config.section("fp16")
    strict = isinstance(deepspeed, Missing) or at_least(deepspeed.version, _SCALE_SINCE)
    scale = fp16.get("loss_scale", 0)
    if strict and is_number(scale) and scale < 0:
        effect = "`ValidationError` when the config is read, even if fp16 is off"
        yield _wrong_value(config, "fp16.loss_scale", "0 or more", effect)
    for name in ("loss_scale", "min_loss_scale", "loss_scale_window"):
        if strict and isinstance(fp16.get(name), bool):
            yield _wrong_value(config, f"fp16.{name}", "a number", _VALIDATED)
    if not enabled(fp16) or scale != 0:
        return
    for name, late in (
        ("min_loss_scale", "the loss scale can fall to 0, and every gradient is then NaN"),
        ("loss_scale_window", "`ZeroDivisionError` when the loss scale is updated"),
    ):
        value = fp16.get(name)
        if value is not None and is_number(value) and value < 1:
            effect = _VALIDATED if strict else late
            yield _wrong_value(config, f"fp16.{name}", "1 or more", effect)


@check(CONDITION)
def values_are_of_their_kind(
    config: DsConfig, deepspeed: DeepSpeedInstall | Missing, run: RunNeeds
) -> Iterator[Finding]:
    """Fails on strings instead of numbers, and on values that DeepSpeed rejects."""
    yield from offered(config, _wrong_values(config, deepspeed, run))


def _wrong_values(
    config: DsConfig, deepspeed: DeepSpeedInstall | Missing, run: RunNeeds
) -> Iterator[Finding]:
    if config.parsed is None:
        return
    blanks = _placeholders(config)
    if len(blanks) >= _MANY:
        yield _template(config, blanks)
        return
    for key, word in config.swallowed.items():
        yield fail(
            f"{config.named(key)} is the string `{word}`: an unquoted string runs to the end of"
            " its line, including the comma",
            effect="DeepSpeed reads the comma as part of the value",
            hint="write `true`, `false` and `null` in lower case, and quote strings",
            key=key,
            line=config.lines.get(key),
            value=word,
        )
    yield from _batch_sizes(config)
    for key in _NUMBERS:
        value = config.get(key)
        odd = isinstance(value, str) if key.startswith("optimizer.") else not is_number(value)
        if key == "gradient_clipping" and isinstance(value, bool):
            yield from _clipped_at_one(config, key, value)
        elif key == "gradient_predivide_factor" and value in (0, False):
            effect = "`ZeroDivisionError` when the gradients are reduced"
            yield _wrong_value(config, key, "a number other than 0", effect)
        elif key.endswith(".eps") and config.get("optimizer.type") == "Adafactor":
            if is_number(value):
                effect = "`TypeError` in `deepspeed.initialize`"
                yield _wrong_value(config, key, "a list of two numbers", effect)
        elif _is_given(config, key, value) and odd and value is not True:
            yield _wrong_value(config, key, "a number", "`TypeError` at the first step")
    yield from _printing(config, run)
    version = deepspeed.version if isinstance(deepspeed, DeepSpeedInstall) else None
    for key in unchecked_booleans(version):
        value = config.get(key)
        if _is_given(config, key, value) and isinstance(value, str):
            yield _wrong_value(
                config, key, "`true` or `false` without quotes", "any string counts as true",
                harmless=value.lower() in _MEANS_TRUE,
            )  # fmt: skip
    yield from _steps(config, deepspeed)
    yield from _loss_scale(config, deepspeed)
    yield from _zero(config, run)
    yield from _betas(config)
    yield from _refused(config, deepspeed, filled=run.framework in _TRAINERS)


def _batch_sizes(config: DsConfig) -> Iterator[Finding]:
    for key in BATCH_KEYS:
        value = config.get(key)
        if not _is_given(config, key, value) or _is_whole(value):
            continue
        if value is False or (is_number(value) and value <= 0):
            continue  # reported by ds-config-batch-mismatch
        if is_number(value) or value is True:
            effect = "DeepSpeed does not check it, and calculates with it as it stands"
            yield _wrong_value(config, key, "an integer", effect, harmless=True)
            continue
        yield _wrong_value(config, key, "an integer", "`TypeError` when DeepSpeed compares it")


def _refused(
    config: DsConfig, deepspeed: DeepSpeedInstall | Missing, *, filled: bool
) -> Iterator[Finding]:
    """Values that DeepSpeed's models and its lists of words do not accept."""
    version = deepspeed.version if isinstance(deepspeed, DeepSpeedInstall) else None
    for refused in refused_kinds(config, version, filled=filled):
        effect = _VALIDATED if "." in refused.key else _REJECTED
        yield _wrong_value(config, refused.key, refused.expected, effect)
    for key, expected, effect in refused_words(config, version, filled=filled):
        yield _wrong_value(config, key, expected, effect)


def _printing(config: DsConfig, run: RunNeeds) -> Iterator[Finding]:
    """How often DeepSpeed reports its progress; accelerate (1.15 utils/dataclasses.py) sets that."""
    key = "steps_per_print"
    value = config.get(key)
    zero = value in (0, False)
    taken = (is_number(value) or value is True) and not zero
    if not _is_given(config, key, value) or taken or run.framework in _TRAINERS:
        return
    if any(given == "auto" for _, given in leaves(config.parsed or {})):
        return  # what fills that in sets this too
    effect = "`ZeroDivisionError`" if zero else "`TypeError`"
    effect += " at the first step"
    if not run.framework:
        effect += ", unless accelerate or transformers passes the config on"
    expected = "an integer above 0" if zero else "an integer"
    yield _wrong_value(config, key, expected, effect, harmless=not run.framework)


def _clipped_at_one(config: DsConfig, key: str, value: bool) -> Iterator[Finding]:
    """DeepSpeed takes a boolean for the number that Python makes of it; 0 does not clip."""
    if not value:
        return
    yield warn(
        f"{config.named(key)} is true, which DeepSpeed reads as 1.0, but it sets the maximum gradient norm",
        effect="gradients are clipped at a norm of 1.0",
        hint=f'write `"{key}": 1.0`, or the norm that you want',
        line=config.lines.get(key),
        norm=1.0,
    )


def _placeholders(config: DsConfig) -> dict[str, str]:
    """Dotted keys whose values are names in capitals or `${NAME}`, as templates contain."""
    values = {key: value for key, value in leaves(config.parsed or {}) if isinstance(value, str)}
    words = {key: value.rstrip(",") for key, value in {**values, **config.swallowed}.items()}
    return {
        key: word
        for key, word in words.items()
        if _PLACEHOLDER.fullmatch(word)
        and word.lower() not in {"true", "false", "none", "null"}
        and not key.startswith(("optimizer.", "scheduler."))
    }


def _template(config: DsConfig, blanks: dict[str, str]) -> Finding:
    key, word = next(iter(blanks.items()))
    return fail(
        f"the config is a template: {len(blanks)} values are placeholders, such as `{word}` in"
        f" {config.named(key)}",
        effect="DeepSpeed rejects the config until they are filled in",
        hint="pass the file that is made from this template",
        keys=blanks,
        line=config.lines.get(key),
        count=len(blanks),
    )


def _is_given(config: DsConfig, key: str, value: Any) -> bool:
    return value is not None and value != "auto" and key not in config.swallowed


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _betas(config: DsConfig) -> Iterator[Finding]:
    key = "optimizer.params.betas"
    value = config.get(key)
    numbers = isinstance(value, list) and all(is_number(one) for one in value)
    three = "adam" not in str(config.get("optimizer.type")).lower()  # of the script's own
    pair = numbers and (len(value) == len(("beta1", "beta2")) or three)
    if isinstance(value, list | str | dict) and _is_given(config, key, value) and not pair:
        yield _wrong_value(config, key, "a list of two numbers", "the optimizer cannot use it")


def _zero(config: DsConfig, run: RunNeeds) -> Iterator[Finding]:
    effect = _VALIDATED
    section = config.get("zero_optimization")
    if isinstance(section, bool) and run.framework in _TRAINERS:
        # DeepSpeed takes the boolean; `HfDeepSpeedConfig` looks for keys in it (accelerate 1.15)
        effect = "`AttributeError` when transformers or accelerate reads the config"
        yield _wrong_value(config, "zero_optimization", _OBJECT, effect)
        return
    key = "zero_optimization.stage"
    value = config.get(key)
    number = whole(value) if isinstance(value, str) else value
    # the autotuner takes a list of stages to try (deepspeed 0.19.8 autotuning/autotuner.py)
    tuned = isinstance(value, list) and enabled(config.section("autotuning"))
    void = "stage" in config.section("zero_optimization") and value is None
    if void or (_is_given(config, key, value) and not tuned and number not in _STAGES):
        yield _wrong_value(config, key, "0, 1, 2 or 3", effect)
    for section in ("offload_optimizer", "offload_param"):
        key = f"zero_optimization.{section}.device"
        value = config.get(key)
        void = value is None and "device" in config.section(key.rpartition(".")[0])
        if void or (_is_given(config, key, value) and value not in _DEVICES):
            yield _wrong_value(config, key, "`none`, `cpu` or `nvme`", effect)
    key = "zero_optimization.allgather_bucket_size"
    value = config.get(key)
    sharded = stage_of(config.section("zero_optimization")) in {1, 2}
    if sharded and is_number(value) and value >= 0 and value % 2 == 1:
        yield _wrong_value(
            config, key, "an even number", "`AssertionError` in `deepspeed.initialize`"
        )


HINT = "correct the value named in the error"

SIGNATURES = (
    Signature(
        # of DeepSpeed's config: other libraries have pydantic models as well
        pattern=r"\d+ validation errors? for DeepSpeed\w*",
        source="pydantic 1-2, deepspeed 0.9-0.19 runtime/config_utils.py",
        examples=(
            "ValidationError: 1 validation error for DeepSpeedZeroConfig",
            "pydantic_core._pydantic_core.ValidationError: 2 validation errors for DeepSpeedFP16Config",
        ),
        not_examples=("a validation error for DeepSpeedConfig",),
        level=Level.STRONG,
        near=("Input should be", "value is not a valid"),
    ),
    Signature(
        pattern=r"\bdeepspeed\.[\w.]{1,80}\.(?P<section>\w{1,60})\(\) argument after \*\* must be a mapping, not (?P<kind>\w{1,40})",
        source="python 3.9-3.14 Python/ceval.c; deepspeed 0.9-0.19 runtime/precision_config.py, config.py",
        message="a section of the DeepSpeed config, the one of `{section}`, is of the type `{kind}`, expected an object",
        hint='write the section as an object, such as `"bf16": {{"enabled": true}}`',
        examples=(
            "TypeError: deepspeed.runtime.precision_config.DeepSpeedBF16Config() argument after ** must be a mapping, not bool",
        ),
        not_examples=("TypeError: deepspeed.x() argument after ** must be a mapping, not bool",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"fp16\.(?:loss_scale|min_loss_scale|loss_scale_window) must be",
        source="deepspeed 0.19.8 runtime/precision_config.py",
        examples=(
            "ValueError: fp16.loss_scale must be a number",
            "fp16.min_loss_scale must be",
            "fp16.loss_scale_window must be",
        ),
    ),
)
