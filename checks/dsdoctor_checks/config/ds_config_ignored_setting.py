"""DeepSpeed ignores a setting in its config.

## Why it matters
The config is valid and the run starts, but it does not do what the file says: parameters stay on
the GPU, the NVMe disk is never used, or the optimizer uses its default weight decay. This shows up
later, as memory that is not saved or as worse results. Some sections turn a feature on when they are
present: `"comms_logger": {"enabled": false}` times each collective.

## What to do
Remove the setting, or set what it depends on.

## References
deepspeed/runtime/zero/config.py, deepspeed/runtime/zero/stage_1_and_2.py,
deepspeed/runtime/swap_tensor/aio_config.py, deepspeed/runtime/precision_config.py,
deepspeed/runtime/config.py (`get_optimizer_params`, `get_pipeline_config`),
deepspeed/runtime/pipe/engine.py, deepspeed/comm/config.py, deepspeed/datastates/config.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dsdoctor.api import (
    Condition,
    DeepSpeedInstall,
    DsConfig,
    Finding,
    Missing,
    Observation,
    Scope,
    check,
    warn,
)
from dsdoctor_checks._util import at_least

from ._present_is_on import present_though_off
from ._tables import enabled, is_number, nearest, newer_than_table, stage_of

CONDITION = Condition(
    "ds-config-ignored-setting",
    id="DSD1306",
    scope=Scope.JOB,
    since="0.1",
    fixes=("repair-ds-config",),
    names=(Observation.SETTING_IGNORED,),
)

#: Release that renamed aio.thread_count to intra_op_parallelism.
_AIO_RENAMED = "0.16.4"
#: How keys begin that hold a comment, since JSON has none.
_COMMENT = ("_", "//", "#", "comment")
#: Sections from which DeepSpeed 0.19.8 picks the settings it knows, without a word about others:
#: runtime/activation_checkpointing/config.py, profiling/config.py, runtime/swap_tensor/aio_config.py.
_LAX = {
    "activation_checkpointing": frozenset(
        {"partition_activations", "number_checkpoints", "contiguous_memory_optimization",
         "synchronize_checkpoint_boundary", "profile", "cpu_checkpointing"}
    ),
    "aio": frozenset(
        {"block_size", "queue_depth", "intra_op_parallelism", "single_submit", "overlap_events",
         "use_gds", "thread_count"}
    ),
    "flops_profiler": frozenset(
        {"enabled", "recompute_fwd_factor", "profile_step", "module_depth", "top_modules",
         "detailed", "output_file"}
    ),
}  # fmt: skip
#: Names that newer releases do not read.
_OLD = frozenset({"thread_count"})
#: What the engine reads of `optimizer` and `scheduler` (deepspeed/runtime/config.py, 0.19.8).
_READ = {
    "optimizer": frozenset({"type", "params", "legacy_fusion"}),
    "scheduler": frozenset({"type", "params"}),
}
#: What the engine reads of `pipeline` (deepspeed/runtime/pipe/engine.py, 0.19.8).
_PIPELINE = frozenset(
    {
        "activation_checkpoint_interval",
        "pipe_partitioned",
        "grad_partitioned",
        "use_reentrant",
    },
)
#: Keys that DeepSpeed stores and never reads: default, and the argument of `PipelineModule` that
#: does what they seem to do (`get_pipeline_config` and pipe/module.py, 0.19.8).
_PIPELINE_STORED = {
    "stages": ("auto", "num_stages"),
    "partition": ("best", "partition_method"),
    "seed_layers": (False, "seed_layers"),
}
_DYNAMIC = ("initial_scale_power", "loss_scale_window", "hysteresis", "min_loss_scale")


def _ignored(
    config: DsConfig, key: str, why: str, effect: str, hint: str, **evidence: object
) -> Finding:
    return warn(
        f"{config.named(key)} is set, but {why}",
        effect=effect,
        hint=hint,
        key=key,
        line=config.lines.get(key),
        value=config.get(key),
        stage=config.get("zero_optimization.stage", 0),
        **evidence,
    )


@check(CONDITION)
def settings_have_effect(
    config: DsConfig, deepspeed: DeepSpeedInstall | Missing
) -> Iterator[Finding]:
    """Warns about settings that have no effect."""
    zero = config.section("zero_optimization")
    stage = stage_of(zero)
    key = "zero_optimization.offload_param"
    device = config.get(f"{key}.device", "none")
    if stage is not None and stage < 3 and device in {"cpu", "nvme"}:  # noqa: PLR2004
        yield _ignored(
            config,
            key,
            f"parameters are offloaded only at ZeRO stage 3, and the stage is {stage}",
            "every GPU keeps all parameters",
            "set `zero_optimization.stage` to 3, or remove `offload_param`",
        )
    key = "zero_optimization.offload_optimizer"
    if stage in {1, 2} and config.get(f"{key}.device") == "nvme":
        yield _ignored(
            config,
            f"{key}.device",
            f"NVMe is used only at ZeRO stage 3, and the stage is {stage}",
            "the optimizer states are kept in host memory",
            'set `device` to "cpu", or `zero_optimization.stage` to 3',
        )
    version = deepspeed.version if isinstance(deepspeed, DeepSpeedInstall) else None
    if "thread_count" in config.section("aio") and (
        version is None or at_least(version, _AIO_RENAMED)
    ):
        yield _ignored(
            config,
            "aio.thread_count",
            f"DeepSpeed {_AIO_RENAMED} renamed it to `intra_op_parallelism`",
            "the default of 1 thread is used",
            "rename it to `intra_op_parallelism`",
        )
    for on in present_though_off(config, version):
        yield _ignored(config, on.key, on.why, on.effect, f"remove `{on.remove}`")
    yield from _unread(config, version)
    yield from _loss_scale(config)
    yield from _beside_params(config)
    yield from _pipeline(config)


def _unread(config: DsConfig, version: str | None) -> Iterator[Finding]:
    """Settings that no release has, in sections that DeepSpeed does not validate."""
    for section, known in _LAX.items():
        held = config.section(section)
        if held.get("enabled") is False:
            continue
        for name in held:
            if name in known or name.startswith(_COMMENT):
                continue
            meant = nearest(name, known - held.keys() - _OLD)
            if newer_than_table(version) and not meant:
                continue
            yield _ignored(
                config,
                f"{section}.{name}",
                f"`{section}` has no such setting",
                "the default is used",
                f"rename it to `{meant}`" if meant else f"use one of {_listed(known - _OLD)}",
                **({"meant": meant} if meant else {}),
            )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _beside_params(config: DsConfig) -> Iterator[Finding]:
    for section, read in _READ.items():
        held = config.section(section)
        if "type" not in held:
            continue
        for name in held:
            if name in read or name.startswith(_COMMENT):
                continue
            misspelt = name == "param" and "params" not in held
            yield _ignored(
                config,
                f"{section}.{name}",
                f"DeepSpeed reads only {_listed(read)} of `{section}`",
                f"the {section} uses its default{'s' if misspelt else f' `{name}`'}",
                "rename it to `params`" if misspelt else f"move `{name}` into `{section}.params`",
            )


def _pipeline(config: DsConfig) -> Iterator[Finding]:
    for name, value in config.section("pipeline").items():
        default, argument = _PIPELINE_STORED.get(name, (None, None))
        if name in _PIPELINE or (argument and value == default):
            continue
        yield _ignored(
            config,
            f"pipeline.{name}",
            f"DeepSpeed reads only {_listed(_PIPELINE)} from `pipeline`",
            "the model is partitioned as the arguments of `PipelineModule` specify"
            if argument
            else "it has no effect",
            f"pass `{argument}` to `PipelineModule` in the script, and remove it"
            if argument
            else f"remove `{name}`",
        )


def _loss_scale(config: DsConfig) -> Iterator[Finding]:
    fp16 = config.section("fp16")
    scale = fp16.get("loss_scale", 0)
    if not enabled(fp16) or not is_number(scale) or scale == 0:
        return
    for name in _DYNAMIC:
        if name in fp16:
            yield _ignored(
                config,
                f"fp16.{name}",
                f"it applies only to a dynamic loss scale, and `loss_scale` is fixed at {scale}",
                "it has no effect",
                f"set `loss_scale` to 0 for a dynamic scale, or remove `{name}`",
            )
            return
