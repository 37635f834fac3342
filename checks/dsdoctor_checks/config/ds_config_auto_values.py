"""The DeepSpeed config has "auto" values that nothing fills in.

## Why it matters
`"auto"` is a placeholder that the Hugging Face Trainer and Accelerate replace before DeepSpeed sees
the config. DeepSpeed itself does not support it: an `"auto"` batch size or learning
rate causes a `TypeError`, `fp16` and `bf16` stay off, `zero_optimization.stage` becomes 0, and other
fields of the validated sections fall back to their defaults.

Both trainers fill `bf16.enabled`, and neither fills the old spelling `bfloat16.enabled`.

## What to do
Start through the Hugging Face Trainer (`--deepspeed FILE`) or Accelerate, or write the values. Spell
the section `bf16`.

## References
transformers/integrations/deepspeed.py, accelerate/utils/deepspeed.py,
deepspeed/runtime/config_utils.py (`DeepSpeedConfigModel.__init__`)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DsConfig,
    Finding,
    LaunchCommand,
    Level,
    Missing,
    Packages,
    RunNeeds,
    Scope,
    Signature,
    TracebackRule,
    check,
    fail,
    ok,
    skip,
    warn,
)

from ._tables import BATCH_KEYS, leaves

CONDITION = Condition("ds-config-auto-values", id="DSD1304", scope=Scope.JOB, since="0.1")

#: Filled by neither trainer (transformers 5 `trainer_config_process`, accelerate 1.15
#: `set_mixed_precision`, 2026-11-22).
_OLD_SPELLING = "bfloat16.enabled"

#: Frameworks that fill in "auto" (accelerate 1.15 `deepspeed_config_process`, transformers 5).
_FILLED = frozenset({"hf", "accelerate"})
#: Frameworks that do not (lightning 2.5 pytorch/strategies/deepspeed.py, 2026-11-22).
_PASSED_ON = {
    "lightning": "Lightning passes the config to DeepSpeed without filling it in",
    "native": "the script passes the config to DeepSpeed without filling it in",
}


#: What they fill in, one or the other (transformers 4.30-5.24 `HfTrainerDeepSpeedConfig`; accelerate
#: 0.12-1.15 `DeepSpeedPlugin.__post_init__`, `_prepare_deepspeed`). A Trainer that accelerate
#: starts fills in the same as one that DeepSpeed starts.
_FILLED_KEYS = frozenset(
    {*BATCH_KEYS, "gradient_clipping", "fp16.enabled", "bf16.enabled", "amp.enabled",
     "amp.opt_level", "optimizer.params.lr", "optimizer.params.betas", "optimizer.params.eps",
     "optimizer.params.weight_decay", "scheduler.params.warmup_min_lr",
     "scheduler.params.warmup_max_lr", "scheduler.params.warmup_num_steps",
     "scheduler.params.total_num_steps", "zero_optimization.stage",
     "zero_optimization.reduce_bucket_size", "zero_optimization.stage3_prefetch_bucket_size",
     "zero_optimization.stage3_param_persistence_threshold",
     "zero_optimization.stage3_gather_16bit_weights_on_model_save",
     "zero_optimization.offload_optimizer.device", "zero_optimization.offload_param.device",
     "zero_optimization.offload_optimizer.nvme_path",
     "zero_optimization.offload_param.nvme_path"}
)  # fmt: skip
#: What accelerate overwrites before it looks for "auto" (1.15 utils/dataclasses.py).
_OVERWRITTEN = frozenset({"steps_per_print"})


def _crashes(key: str) -> bool:
    return (
        key in {*BATCH_KEYS, "gradient_clipping", "sequence_parallel_size"}
        or key.startswith(("optimizer.params.", "scheduler.params."))
        or key in {"optimizer.type", "scheduler.type"}
    )


def _not_filled_in(autos: list[str], named: str, why: str) -> str:
    if len(autos) == 1:
        return f'{named} is "auto", but {why}'
    return f'{named} are "auto", but {why}'


@check(CONDITION)
def auto_is_filled_in(
    config: DsConfig,
    packages: Packages | Missing,
    command: LaunchCommand | Missing,
    run: RunNeeds,
) -> Iterator[Finding]:
    """Reports "auto" values that would reach DeepSpeed."""
    autos = [key for key, value in leaves(config.parsed or {}) if value == "auto"]
    if not autos:
        return
    old = _OLD_SPELLING in autos and "bf16" not in (config.parsed or {})
    if old and run.framework not in _FILLED:
        yield warn(
            f'{config.named(_OLD_SPELLING)} is "auto", but trainers fill in only `bf16.enabled`',
            effect="bf16 stays off and the model trains in fp32",
            hint="rename the section `bfloat16` to `bf16`",
            key=_OLD_SPELLING,
            line=config.lines.get(_OLD_SPELLING),
        )
    lines = {key: config.lines.get(key) for key in autos}
    named = ", ".join(config.named(key) for key in autos[:3])
    if len(autos) > 3:  # noqa: PLR2004
        named = f"{named} and {len(autos) - 3} more"
    bad = [key for key in autos if _crashes(key)]
    effect = (
        f"`TypeError` in DeepSpeed, which expects `{bad[0]}` to be a number"
        if bad
        else "DeepSpeed uses its defaults: mixed precision off, ZeRO stage 0"
    )
    if run.framework in _PASSED_ON:
        yield (fail if bad else warn)(
            _not_filled_in(autos, named, _PASSED_ON[run.framework]),
            effect=effect,
            hint='replace each "auto" with a value, or remove the key',
            count=len(autos),
            keys=lines,
            crashing=bad,
        )
        return
    left = [key for key in autos if key not in _FILLED_KEYS | _OVERWRITTEN]
    if run.framework in _FILLED:
        yield from _left(config, left)
        yield ok(keys=lines, framework=run.framework)
        return
    if isinstance(packages, Missing):
        yield skip(
            f'{named}: "auto" needs the Hugging Face Trainer; the installed packages'
            f" are unknown: {packages.detail}",
            keys=lines,
        )
        return
    fillers = [name for name in ("transformers", "accelerate") if packages.version(name)]
    direct = isinstance(command, LaunchCommand) and any(
        name == "deepspeed_config" for name, _ in command.script_options()
    )
    if fillers and not direct:
        yield ok(
            f'{named}: the Hugging Face Trainer or Accelerate must fill in "auto"',
            keys=lines,
            fillers=fillers,
        )
        return
    why = (
        "`--deepspeed_config` passes the file to DeepSpeed itself, which does not support it"
        if fillers
        else "neither `transformers` nor `accelerate` is installed to fill them in"
    )
    yield (fail if bad and not fillers else warn)(
        _not_filled_in(autos, named, why),
        effect=effect,
        hint="pass the file to the Hugging Face Trainer with `--deepspeed FILE`, or replace each"
        ' "auto" with a value'
        if fillers
        else 'replace each "auto" with a value, or install `transformers` and use its Trainer',
        count=len(autos),
        keys=lines,
        crashing=bad,
    )


def _left(config: DsConfig, keys: list[str]) -> Iterator[Finding]:
    """Values at which accelerate stops, since nothing gives it another for them."""
    for key in keys:
        yield fail(
            f'{config.named(key)} is "auto", but neither transformers nor accelerate fills it in',
            effect=f"`ValueError` when accelerate prepares the model: `{key}` not found in kwargs",
            hint="rename the section `bfloat16` to `bf16`"
            if key == _OLD_SPELLING
            else f"replace it with a value, or remove `{key}`",
            key=key,
            line=config.lines.get(key),
        )


HINT = 'replace each "auto" with a value, or pass the config through the Hugging Face Trainer'

SIGNATURES = (
    Signature(
        pattern=r"['\x22][<>]=?['\x22] not supported between instances of ['\x22](?:str['\x22] and ['\x22](?:int|float)\b|(?:int|float)['\x22] and ['\x22]str\b)",
        source=(
            'python 3.6-3.14 Objects/object.c do_richcompare, for values "auto" in deepspeed '
            "0.3-0.19 runtime/config.py"
        ),
        examples=(
            "TypeError: '>' not supported between instances of 'str' and 'int'",
            "TypeError: '<=' not supported between instances of 'float' and 'str'",
            "TypeError: '>' not supported between instances of 'str' and \"int",
        ),
        not_examples=(
            "'>' not supported between instances of 'list' and 'int'",
            "TypeError: '<' not supported between instances of 'str' and 'interval'",
        ),
        message='A value of the DeepSpeed config that must be a number is text: "auto", which nothing filled in, or a number in quotes',
        hint='replace each "auto" with a value, or pass the config through the Hugging Face Trainer; write numbers without quotes',
        level=Level.CERTAIN,
        masks=("ds-config-batch-mismatch",),
        near=(
            "deepspeed/runtime/config",
            "deepspeed/runtime/lr",
            "deepspeed/runtime/zero",
            "deepspeed/runtime/fp16",
            "deepspeed/runtime/bf16",
            "deepspeed/ops/",
            "deepspeed\\runtime\\config",
            "gradient_clipping",
            "train_batch",
            "_take_model_step",
            "_do_sanity_check",
            "'auto'",
            '"auto"',
        ),
    ),
    Signature(
        pattern="can't multiply sequence by non-int of type '(?:str|float)'",
        source="python 3.3-3.14 Objects/abstract.c",
        examples=(
            "TypeError: can't multiply sequence by non-int of type 'str'",
            "TypeError: can't multiply sequence by non-int of type 'float'",
        ),
        near=("deepspeed/runtime", "deepspeed/ops", "'auto'", '"auto"'),
    ),
    Signature(
        pattern=r"multi_tensor_adam\(\): incompatible function arguments",
        source="pybind11 2.0-2.13 pybind11.h, for deepspeed csrc/adam",
        examples=(
            "TypeError: multi_tensor_adam(): incompatible function arguments.",
            "TypeError: multi_tensor_adam(): incompatible function arguments. The following argument types are supported:",
        ),
    ),
    Signature(
        pattern=r"\b(?:[Ii]nvalid (?:literal|value|type)|could not convert|unsupported value|cannot be set to).{0,80}(?<!either )(?<! or )(?<! be )['\x22]auto['\x22](?! or )|input_value='auto'",
        source=(
            "python 3.3-3.14 Objects/longobject.c, Objects/floatobject.c; pydantic_core 2.0-2.45 "
            "src/errors"
        ),
        examples=(
            "ValueError: could not convert string to float: 'auto'",
            "invalid literal for int() with base 10: 'auto'",
            "TypeError: unsupported value 'auto'",
            "ValueError: gradient_accumulation_steps cannot be set to 'auto' in the DeepSpeed config.",
            "Input should be a valid integer [type=int_parsing, input_value='auto', input_type=str]",
        ),
        not_examples=(
            "cannot be set to either 'auto' or 'on'",
            "ValueError: Invalid value of `dtype`. Expected either 'auto' or the name of a type, but got 3.",
        ),
        level=Level.STRONG,
        masks=("ds-config-invalid-key",),
        not_near=("device_map", "hf:", "values to 'auto'"),
    ),
    Signature(
        pattern=r"value is not a valid (?:integer|float|boolean|number) \(type=type_error",
        source="pydantic 1.0-1.10 errors.py",
        examples=(
            "value is not a valid integer (type=type_error.integer)",
            "  value is not a valid float (type=type_error.float)",
            "value is not a valid boolean (type=type_error",
            "value is not a valid number (type=type_error",
        ),
        level=Level.STRONG,
        near=("DeepSpeed",),
        masks=("ds-config-invalid-key",),
    ),
    Signature(
        pattern=r"unsupported operand type\(s\) for [/*%+-]+=?: '(?:str' and '(?:int|float|str)|(?:int|float)' and 'str)'",
        source="CPython 3.11.7 libpython3.11.so.1.0",
        examples=(
            "TypeError: unsupported operand type(s) for /: 'str' and 'int'",
            "TypeError: unsupported operand type(s) for -: 'str' and 'str'",
            "TypeError: unsupported operand type(s) for +: 'int' and 'str'",
        ),
        not_examples=("TypeError: unsupported operand type(s) for +: 'NoneType' and 'Tensor'",),
        near=(
            "deepspeed/runtime/lr_schedules",
            "deepspeed/runtime/config",
            "deepspeed/runtime/zero",
            "deepspeed/ops/",
            "'auto'",
            '"auto"',
        ),
    ),
    Signature(
        pattern=r"Please specify `\S+` without `auto`|requires you to pass at least one of training or evaluation dataloaders",
        source="accelerate 0.27.2-1.15.0 utils/dataclasses.py, accelerator.py",
        examples=(
            "ValueError: train_micro_batch_size_per_gpu not found in kwargs. Please specify `train_micro_batch_size_per_gpu` without `auto` (set to correct value) in the DeepSpeed config file or pass it in kwargs.",
            "ValueError: When using DeepSpeed `accelerate.prepare()` requires you to pass at least one of training or evaluation dataloaders with `batch_size` attribute returning an integer value",
        ),
        not_examples=(
            "ValueError: train_micro_batch_size_per_gpu not found in kwargs. Please specify `train_micro_batch_size_per_gpu` without",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"got a number with a fractional part \[type=int_from_float",
        source="pydantic_core 2.0-2.45 src/errors/types.rs",
        examples=(
            "  Input should be a valid integer, got a number with a fractional part [type=int_from_float, input_value=15099494.4, input_type=float]",
            "Input should be a valid integer, got a number with a fractional part [type=int_from_float, input_value=0.9]",
        ),
        level=Level.STRONG,
        masks=("ds-config-invalid-key",),
        near=(
            "stage3_prefetch_bucket_size",
            "reduce_bucket_size",
            "stage3_param_persistence_threshold",
        ),
    ),
)

TRACEBACK_RULES = (
    TracebackRule(
        file="/deepspeed.py",  # `transformers/deepspeed.py` before 4.33; the function is in no other
        function="trainer_config_finalize",
        kinds=("AttributeError",),
        source="transformers 4.12-4.32 deepspeed.py, 4.33-5 integrations/deepspeed.py",
        example='Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/transformers/integrations/deepspeed.py", line 7, in trainer_config_finalize\nAttributeError: x',
    ),
)
