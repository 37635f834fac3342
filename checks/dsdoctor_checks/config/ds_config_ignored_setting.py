"""DeepSpeed will ignore a setting of its config.

## Why it matters
The config is valid and the run starts, but it does not do what the file says: the parameters stay
on the GPU, the NVMe disk is never used, the loss scale is another one. That shows later, as memory
that is not saved or a figure that is not met.

## What to do
Take the setting out, or set what it depends on.

## References
deepspeed/runtime/zero/config.py, deepspeed/runtime/zero/stage_1_and_2.py,
deepspeed/runtime/swap_tensor/aio_config.py, deepspeed/runtime/precision_config.py
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DeepSpeedInstall,
    DsConfig,
    Finding,
    Missing,
    Scope,
    check,
    warn,
)
from dsdoctor_checks._util import at_least

from ._tables import enabled, is_number, stage_of

CONDITION = Condition(
    "ds-config-ignored-setting",
    id="DSD1306",
    scope=Scope.JOB,
    since="0.1",
    fixes=("repair-ds-config",),
)

#: Release that renamed aio.thread_count to intra_op_parallelism.
_AIO_RENAMED = "0.16.4"
_AIO = frozenset(
    {
        "block_size",
        "queue_depth",
        "intra_op_parallelism",
        "single_submit",
        "overlap_events",
        "use_gds",
        "thread_count",
    },
)
#: deepspeed/runtime/activation_checkpointing/config.py (0.19.8).
_CHECKPOINTING = frozenset(
    {
        "partition_activations",
        "number_checkpoints",
        "contiguous_memory_optimization",
        "synchronize_checkpoint_boundary",
        "profile",
        "cpu_checkpointing",
    },
)
_DYNAMIC = ("initial_scale_power", "loss_scale_window", "hysteresis", "min_loss_scale")


def _ignored(config: DsConfig, key: str, why: str, effect: str, hint: str) -> Finding:
    return warn(
        f"{config.named(key)} is set, but {why}",
        effect=effect,
        hint=hint,
        key=key,
        line=config.lines.get(key),
        value=config.get(key),
        stage=config.get("zero_optimization.stage", 0),
    )


@check(CONDITION)
def settings_have_effect(
    config: DsConfig, deepspeed: DeepSpeedInstall | Missing
) -> Iterator[Finding]:
    """Speaks of settings whose condition is not met."""
    zero = config.section("zero_optimization")
    stage = stage_of(zero)
    key = "zero_optimization.offload_param"
    device = config.get(f"{key}.device", "none")
    if stage is not None and stage < 3 and device in {"cpu", "nvme"}:  # noqa: PLR2004
        yield _ignored(
            config,
            key,
            f"parameters are offloaded at ZeRO stage 3 alone, and the stage is {stage}",
            "every GPU keeps all parameters",
            "set `zero_optimization.stage` to 3, or take `offload_param` out",
        )
    key = "zero_optimization.offload_optimizer"
    if stage in {1, 2} and config.get(f"{key}.device") == "nvme":
        yield _ignored(
            config,
            f"{key}.device",
            f"NVMe is used at ZeRO stage 3 alone, and the stage is {stage}",
            "the optimizer states go to host RAM",
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
            "write `intra_op_parallelism`",
        )
    for name in config.section("aio"):
        if name not in _AIO:
            yield _ignored(
                config,
                f"aio.{name}",
                "DeepSpeed reads no such key",
                "the defaults of `aio` are used",
                f"correct `{name}`: the keys are {', '.join(sorted(_AIO - {'thread_count'}))}",
            )
    for name in config.section("activation_checkpointing"):
        if name not in _CHECKPOINTING:
            yield _ignored(
                config,
                f"activation_checkpointing.{name}",
                "DeepSpeed reads no such key",
                "the default is used",
                f"correct `{name}`: the keys are {', '.join(sorted(_CHECKPOINTING))}",
            )
    yield from _loss_scale(config)
    for section in ("optimizer", "scheduler"):
        held = config.section(section)
        if "param" in held and "params" not in held:
            yield _ignored(
                config,
                f"{section}.param",
                "DeepSpeed reads `params`",
                f"the {section} runs with its defaults",
                "write `params`",
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
                f"it rules the dynamic loss scale, and `loss_scale` is fixed at {scale}",
                "it does nothing",
                f"set `loss_scale` to 0 for a dynamic scale, or take `{name}` out",
            )
            return
