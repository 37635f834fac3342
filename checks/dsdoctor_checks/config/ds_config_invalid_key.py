"""The DeepSpeed config contains a key that this DeepSpeed does not accept.

## Why it matters
DeepSpeed silently ignores unknown top-level keys, so a typo leaves the default in force. If most keys
of a file belong to another program (GPT-NeoX, for example, passes DeepSpeed's keys on), the file
counts as that program's, and its own keys are not reported. In `zero_optimization`, `fp16`, `bf16`
and the other validated sections, an unknown key is an error. `optimizer.params` and
`scheduler.params` become keyword arguments of the class, so an unknown name raises a `TypeError` when
the engine creates it. Since 0.19.7, a section of a removed feature is an error too, even with
`"enabled": false`.

## What to do
Correct the name, move the key to the section that it belongs to, or remove it.

## References
deepspeed/runtime/config.py, deepspeed/runtime/zero/config.py, deepspeed/runtime/lr_schedules.py,
deepspeed/runtime/engine.py (`_configure_basic_optimizer`),
https://github.com/deepspeedai/DeepSpeed/issues/8489
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    ConfigVerdict,
    DeepSpeedInstall,
    DsConfig,
    Finding,
    LaunchParse,
    Level,
    Missing,
    RunNeeds,
    Scope,
    Signature,
    check,
    fail,
    warn,
)
from dsdoctor_checks._util import at_least

from ._parameters import unknown_parameters
from ._releases import FIRST_MODELS, SECTION_SINCE, SINCE, has, keys_of
from ._repairable import offered
from ._tables import (
    BATCH_KEYS,
    REMOVED,
    REMOVED_SINCE,
    STRICT,
    TABLE_VERSION,
    TOP_LEVEL,
    bf16_section,
    nearest,
    newer_than_table,
)

CONDITION = Condition(
    "ds-config-invalid-key",
    id="DSD1302",
    scope=Scope.JOB,
    since="0.1",
    narrower=("ds-config-unreadable",),
    fixes=("repair-ds-config",),
)

#: Prefixes of keys that are used as comments.
_REMARKS = ("_", "$", "//", "#", "comment")

#: Sections that releases before their model read all the same, ignoring what they did not know.
_ONCE_LAX = frozenset({"fp16", "bf16", "bfloat16"})


#: A section without which accelerate does not create its DeepSpeed plugin (accelerate 0.12 to 1.15
#: utils/dataclasses.py, read 2026-11-29), and the frameworks that use the plugin.
_NEEDED = "zero_optimization"
_NEED_ZERO = frozenset({"hf", "accelerate"})

#: That many unknown keys are typos, however short the file is.
_FEW = 3


#: Names that a top-level key had before a release.
_ONCE = {"seq_parallel_comm_data_type": "0.16.5"}


def _expected(key: str, version: str | None) -> bool:
    if key in _ONCE:
        return version is not None and not at_least(version, _ONCE[key])
    known = key in TOP_LEVEL and has(key, version)
    return known or key in REMOVED or key.lower().startswith(_REMARKS)


@check(CONDITION)
def keys_are_known(
    config: DsConfig,
    deepspeed: DeepSpeedInstall | Missing,
    verdict: ConfigVerdict | Missing,
    run: RunNeeds,
    parse: LaunchParse | Missing,
) -> Iterator[Finding]:
    """Reports removed, unknown and misplaced keys; what DeepSpeed accepted is valid."""
    yield from offered(config, _strange_keys(config, deepspeed, verdict))
    reported = isinstance(parse, LaunchParse) and _NEEDED in parse.error
    absent = config.parsed is not None and _NEEDED not in config.parsed
    # something fills the config in, and that is one of the two, or the script itself
    left_open = not run.framework and "auto" in [config.get(key) for key in BATCH_KEYS]
    if (run.framework in _NEED_ZERO or left_open) and absent and not reported:
        yield from offered(config, [_without_zero(certain=not left_open)])


def _without_zero(*, certain: bool) -> Finding:
    effect = "`ValueError` when transformers or accelerate reads the config"
    return (fail if certain else warn)(
        f"the config has no `{_NEEDED}` section, which accelerate's DeepSpeed plugin requires",
        effect=effect if certain else f'{effect}, unless the script fills in "auto" itself',
        hint="add a `zero_optimization` section",
        key=_NEEDED,
    )


def _strange_keys(
    config: DsConfig, deepspeed: DeepSpeedInstall | Missing, verdict: ConfigVerdict | Missing
) -> Iterator[Finding]:
    if config.parsed is None:
        return
    version = deepspeed.version if isinstance(deepspeed, DeepSpeedInstall) else None
    newer = newer_than_table(version)
    shown = version or TABLE_VERSION
    # without an installed release, judge by the release that the tables were read from
    removal = version is None or at_least(version, REMOVED_SINCE)
    yield from _removed(config, removal, shown)
    strange = [key for key in config.parsed if not _expected(key, version)]
    ours = len(config.parsed) - len(strange)
    if not ours or len(strange) <= max(ours, _FEW):
        for key in strange:
            yield from _unknown(config, key, newer=newer, version=shown)
    for section in STRICT:
        if not _is_accepted(verdict, section):
            yield from _strange_in(config, section, version)
    for part in ("optimizer", "scheduler"):
        yield from unknown_parameters(config, part, verdict, version)


def _strange_in(config: DsConfig, section: str, version: str | None) -> Iterator[Finding]:
    """Keys of a section that this release does not have."""
    if section == "bfloat16" and bf16_section(config) != section:
        return
    if version is not None and not at_least(version, FIRST_MODELS):
        return
    known = keys_of(section, version)
    lax = known is None and section in _ONCE_LAX
    if known is None:
        if not lax:
            return
        known = STRICT[section]
    newer = newer_than_table(version)
    shown = version or TABLE_VERSION
    for name in config.section(section):
        key = f"{section}.{name}"
        if name in known or key in REMOVED:
            continue
        since = SINCE.get(key, SECTION_SINCE.get(section)) if name in STRICT[section] else None
        meant = None if since else nearest(name, known)
        if newer and not meant:
            continue
        said = f"{config.named(key)} is not a key of `{section}` in DeepSpeed {shown}"
        hint = f"remove `{name}` from `{section}`"
        if meant:
            said = (
                f"{config.named(key)} is not a key of `{section}` in DeepSpeed {shown}; the closest is "
                f"`{meant}`"
            )
            hint = f"rename it to `{meant}`"
        elif since:
            said = (
                f"{config.named(key)} is not a key of `{section}` in DeepSpeed {shown}; "
                f"{since} added it"
            )
            hint = f"upgrade DeepSpeed to {since} or newer, or {hint}"
        yield (warn if newer or lax else fail)(
            said,
            effect="DeepSpeed silently ignores it"
            if lax
            else "DeepSpeed rejects the config: `Extra inputs are not permitted`",
            hint=hint,
            key=key,
            line=config.lines.get(key),
            meant=meant,
            deepspeed=version,
            since=since,
        )


def _is_accepted(verdict: ConfigVerdict | Missing, section: str) -> bool:
    """Whether the installed DeepSpeed has read a section and accepted it."""
    if isinstance(verdict, Missing) or any(not one.key for one in verdict.refusals):
        return False
    return not any(one.key.startswith(section) for one in verdict.refusals)


def _removed(config: DsConfig, removal: bool, version: str) -> Iterator[Finding]:
    for key in sorted(REMOVED):
        section, _, name = key.rpartition(".")
        holder = config.section(section) if section else config.parsed or {}
        if removal and name in holder:
            yield fail(
                f"{config.named(key)} configures a feature that DeepSpeed {REMOVED_SINCE} removed,"
                f" but DeepSpeed {version} is installed",
                effect="`DeepSpeedConfigError` in every rank, even if the section is disabled",
                hint=_removal_hint(config, key),
                key=key,
                line=config.lines.get(key),
                deepspeed=version,
                removed_since=REMOVED_SINCE,
            )


def _removal_hint(config: DsConfig, key: str) -> str:
    hint = f"remove `{key}`, or install a DeepSpeed older than {REMOVED_SINCE}"
    if key == "elasticity" and not any(config.get(one) for one in BATCH_KEYS[:2]):
        return f'{hint}; without it, add `"train_micro_batch_size_per_gpu"`'
    return hint


def _unknown(config: DsConfig, key: str, *, newer: bool, version: str) -> Iterator[Finding]:
    home = next((section for section, known in STRICT.items() if key in known), None)
    since = SINCE.get(key)
    meant = None if since else nearest(key, TOP_LEVEL)
    said = f"{config.named(key)} is not a top-level key of DeepSpeed {version}"
    if since:
        said = f"{said}; {since} added it"
        hint = f"upgrade DeepSpeed to {since} or newer, or remove `{key}`"
    elif meant:
        said, hint = f"{said}; the closest is `{meant}`", f"rename it to `{meant}`"
    elif home:
        said, hint = f"{said}; it belongs in `{home}`", f"move `{key}` into `{home}`"
    elif newer:
        return
    else:
        hint = f"remove `{key}`, or correct its name"
    yield warn(
        said,
        effect="DeepSpeed silently ignores it",
        hint=hint,
        key=key,
        line=config.lines.get(key),
        meant=meant or home,
        deepspeed=version,
    )


HINT = "correct the key named in the error"

SIGNATURES = (
    Signature(
        # the classes of its config; other libraries (vLLM, for one) have pydantic models as well
        pattern=r"\d+ validation errors? for (?:DeepSpeed\w*|CSVConfig|CometConfig|CommsLoggerConfig|CompileConfig|HybridEngineConfig|TPConfig|TPTrainingConfig|TensorBoardConfig|WandbConfig|ZenFlowConfig)\b",
        source="deepspeed 0.19.8: subclasses of DeepSpeedConfigModel",
        examples=(
            "ValidationError: 1 validation error for DeepSpeedZeroConfig",
            "pydantic_core._pydantic_core.ValidationError: 2 validation errors for DeepSpeedFP16Config",
            "ValidationError: 1 validation error for CSVConfig",
            "ValidationError: 1 validation error for CometConfig",
            "ValidationError: 1 validation error for CommsLoggerConfig",
            "ValidationError: 1 validation error for CompileConfig",
            "ValidationError: 1 validation error for HybridEngineConfig",
            "ValidationError: 1 validation error for TPConfig",
            "ValidationError: 1 validation error for TPTrainingConfig",
            "ValidationError: 1 validation error for TensorBoardConfig",
            "ValidationError: 1 validation error for WandbConfig",
            "ValidationError: 1 validation error for ZenFlowConfig",
        ),
        not_examples=(
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
        ),
        level=Level.STRONG,
        not_near=("Input should be", "value is not a valid"),
        message="A key or a value of the DeepSpeed config is not valid",
        hint="correct the key or value named in the error",
    ),
    Signature(
        pattern="[Ee]xtra (?:fields not|inputs are not) permitted",
        source="pydantic 2.7.4 config.py; pydantic 1.10.13-2.14.3 v1/errors.py",
        examples=(
            "  Extra inputs are not permitted [type=extra_forbidden]",
            "  extra fields not permitted (type=value_error.extra)",
        ),
        near=("deepspeed", "DeepSpeed"),
    ),
    Signature(
        pattern="Duplicate keys in DeepSpeed",
        source="deepspeed 0.19.8 runtime/config_utils.py",
        examples=("ValueError: Duplicate keys in DeepSpeed config: ['a']",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"^\S*DeepSpeedConfigError: ",
        source="deepspeed 0.3-0.19 runtime/config_utils.py, runtime/config.py",
        examples=(
            "deepspeed.runtime.config.DeepSpeedConfigError: Elastic training has been removed; the 'elasticity' configuration block is no longer supported. Set train_batch_size / train_micro_batch_size_per_gpu / gradient_accumulation_steps directly.",
        ),
        level=Level.STRONG,
        message="The DeepSpeed config is not valid",
        hint="correct what the error names",
    ),
    Signature(
        pattern=r"(?:FusedAdam|DeepSpeedCPUAdam|FusedLamb|WarmupLR|WarmupDecayLR|OneCycle|DeepSpeed\w{0,40}Config\w{0,40})(?:\.__init__)?\(\) got an unexpected",
        source=(
            "python 3.3-3.14 Python/ceval.c, for classes of deepspeed 0.3-0.19 ops/adam, ops/lamb, "
            "runtime/lr_schedules.py, runtime/config_utils.py"
        ),
        examples=(
            "TypeError: FusedAdam.__init__() got an unexpected keyword argument 'x'",
            "TypeError: __init__ of WarmupLR() got an unexpected keyword argument 'total_num_steps'",
            "DeepSpeedCPUAdam() got an unexpected",
            "FusedLamb() got an unexpected",
            "WarmupDecayLR() got an unexpected",
            "OneCycle() got an unexpected",
            "DeepSpeednameConfigname() got an unexpected",
        ),
        not_examples=("Foo() got an unexpected keyword argument 'x'",),
    ),
    Signature(
        pattern="Please specify the ZeRO optimization config",
        source="accelerate 1.15.0 utils/dataclasses.py",
        examples=(
            "ValueError: Please specify the ZeRO optimization config in the DeepSpeed config.",
        ),
        level=Level.STRONG,
        message="The DeepSpeed config has no `zero_optimization` section",
        hint="add a `zero_optimization` section",
    ),
    Signature(
        pattern="Invalid communication_data_type",
        source="deepspeed 0.19.8 runtime/config.py",
        message="`communication_data_type` has a value that DeepSpeed does not know",
        hint="set it to `fp32`, `fp16` or `bf16`, or remove it",
        examples=("Invalid communication_data_type",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"^\S*ElasticityConfigError: ",
        source="deepspeed 0.3-0.19 elasticity/utils.py, elasticity/config.py",
        examples=("x1ElasticityConfigError: ",),
        message="The `elasticity` section of the DeepSpeed config is not valid",
        hint="correct what the error names",
    ),
    Signature(
        pattern=r"'\w+' is not a field in \S",
        source="deepspeed 0.19.8 runtime/config_utils.py",
        examples=("'name' is not a field in x",),
        not_examples=("' is not a field in is fine",),
    ),
    Signature(
        pattern=r"'\w+' is a required field and does not have a default",
        source="deepspeed 0.19.8 runtime/config_utils.py",
        examples=("AssertionError: 'stage' is a required field and does not have a default value",),
        not_examples=("' is a required field and does not have a default is fine",),
    ),
    Signature(
        pattern=r"Cannot provide deprecated parameter '\w+' and",
        source="deepspeed 0.19.8 runtime/config_utils.py",
        examples=(
            "AssertionError: Cannot provide deprecated parameter 'cpu_offload' and replacing parameter 'offload_optimizer' together",
        ),
        not_examples=("AssertionError: Cannot provide deprecated parameter 'cpu_offload'",),
    ),
    Signature(
        pattern=r"^ValueError: (?:warmup_num_steps|lr_range_test_step_size|cycle_\w+_step_size) must be",
        source="deepspeed 0.19 runtime/lr_schedules.py",
        examples=(
            "ValueError: warmup_num_steps must be",
            "ValueError: lr_range_test_step_size must be",
            "ValueError: cycle_name_step_size must be",
        ),
        not_examples=(
            "ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C header, got 88 from PyObject",
        ),
    ),
)
