"""Combinations that pass DeepSpeed's validation, and that the engine rejects while it starts.

Source: deepspeed 0.19.8 runtime/engine.py (`_do_sanity_check`, `_do_optimizer_sanity_check`,
`_scheduler_from_config`), runtime/zero/stage_1_and_2.py, runtime/zero/stage3.py and
runtime/torch_autocast.py, and the same files of all releases from 0.9.0 on; held against
`deepspeed.initialize` on CPU ranks on 2026-11-29.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from dsdoctor.api import DsConfig, Finding, fail
from dsdoctor_checks._util import at_least

from ._classes import SCHEDULER_NEEDS, is_offloaded, optimizer_of
from ._releases import has
from ._tables import (
    OPTIMIZERS,
    SCHEDULERS,
    TORCH_OPTIMIZERS,
    TORCH_SCHEDULERS,
    bf16_section,
    enabled,
    number_of,
    stage_of,
    truth,
)

_INITIALIZE = "in `deepspeed.initialize`"
_ASSERTS = f"`AssertionError` {_INITIALIZE}"
_ZERO = frozenset({1, 2, 3})
_PARTITIONED = 3
#: Classes of torch that ZeRO takes as they are (runtime/zero/utils.py, 0.9 to 0.19).
_TESTED = frozenset({"Adam", "AdamW", "Adagrad"})
#: Release from which bf16 without ZeRO cannot accumulate in fp32.
_NO_MIX = "0.18.5"
#: Spellings of `DtypeEnum` (runtime/config.py, 0.19.8).
_TYPES = {
    "fp32": ("torch.float32", "fp32", "float32", "float"),
    "fp16": ("torch.float16", "fp16", "float16", "half"),
    "bf16": ("torch.bfloat16", "bf16", "bfloat16"),
}


def clash(config: DsConfig, keys: tuple[str, ...], why: str, effect: str, hint: str) -> Finding:
    """A failure; `{named}` in the reason is replaced by the keys, so that it is one whole sentence."""
    named = " and ".join(config.named(key) for key in keys)
    return fail(
        why.replace("{named}", named, 1),
        effect=effect,
        hint=hint,
        keys={key: config.lines.get(key) for key in keys},
        values={key: config.get(key) for key in keys},
    )


def engine_clashes(config: DsConfig, version: str | None) -> Iterator[Finding]:
    """What the engine rejects, for a stage that is known.

    Args:
        config: the config.
        version: the DeepSpeed release; None = that of the tables.
    """
    stage = stage_of(config.section("zero_optimization"))
    yield from _optimizer(config, stage)
    yield from _scheduler(config, stage)
    yield from _norm(config, stage, version)
    yield from _accumulation(config, stage, version)
    yield from _precision(config, stage, version)
    yield from _zenflow(config, stage, version)
    key = "zero_optimization.legacy_stage1"
    if truth(config.get(key)) is True and stage in _ZERO:
        yield clash(
            config,
            (key,),
            "{named} is true, but DeepSpeed 0.5.9 removed the old ZeRO stage 1",
            f"an exception {_INITIALIZE}",
            "remove `legacy_stage1`",
        )


def _optimizer(config: DsConfig, stage: int | None) -> Iterator[Finding]:
    key = "optimizer.type"
    name = config.get(key)
    if not isinstance(name, str):
        return
    foreign = name in TORCH_OPTIMIZERS and name not in _TESTED and name.lower() not in OPTIMIZERS
    allowed = config.get("zero_allow_untested_optimizer")
    if stage in _ZERO and (foreign or name.lower() == "lamb") and not allowed:
        yield clash(
            config,
            (key,),
            f"{{named}} is `{name}`, which ZeRO takes only with `zero_allow_untested_optimizer`",
            _ASSERTS,
            "set `zero_allow_untested_optimizer` to true, or use `AdamW`",
        )
    cls = (optimizer_of(config) or ("", None))[0]
    ratio = number_of(config.get("zero_optimization.offload_optimizer.ratio", 1.0))
    partial = stage == _PARTITIONED and is_offloaded(config) and ratio is not None and ratio < 1
    if partial and cls and cls != "DeepSpeedCPUAdam":
        keys = (key, "zero_optimization.offload_optimizer.ratio")
        yield clash(
            config,
            keys,
            "{named} are incompatible: partial offload supports only DeepSpeed's own Adam",
            _ASSERTS,
            "use `AdamW` without `torch_adam`, or remove `ratio`",
        )
    amsgrad = "optimizer.params.amsgrad"
    if cls in {"FusedAdam", "FusedLamb"} and config.get(amsgrad):
        yield clash(
            config,
            (amsgrad,),
            f"{{named}} is true, but `{cls}` does not support AMSGrad",
            f"`RuntimeError` {_INITIALIZE}",
            "remove `amsgrad`",
        )


def _scheduler(config: DsConfig, stage: int | None) -> Iterator[Finding]:
    key = "scheduler.type"
    name = config.get(key)
    if not isinstance(name, str) or name not in {*SCHEDULERS, *TORCH_SCHEDULERS}:
        return
    halved = enabled(config.section("fp16")) or enabled(config.section(bf16_section(config)))
    wrapped = stage in _ZERO or (stage is not None and halved)
    if name in TORCH_SCHEDULERS and wrapped:
        yield clash(
            config,
            (key,),
            f"{{named}} is `{name}` of torch, which does not take the optimizer that DeepSpeed wraps"
            " for ZeRO, fp16 and bf16",
            f"`TypeError` {_INITIALIZE}: not an Optimizer",
            "use `WarmupLR`, `WarmupDecayLR` or `WarmupCosineLR`, or remove `scheduler` and pass the"
            " scheduler to `deepspeed.initialize(lr_scheduler=...)`",
        )
        return
    params = config.section("scheduler.params")
    lacking = [one for one in SCHEDULER_NEEDS.get(name, ()) if one not in params]
    if lacking:
        missing = " and ".join(f"`{one}`" for one in lacking)
        settings = " and ".join(f"`scheduler.params.{one}`" for one in lacking)
        yield clash(
            config,
            (key,),
            f"{{named}} is `{name}`, but `scheduler.params` does not set {missing}",
            "`TypeError` when the engine creates the scheduler",
            f"set {settings}",
        )
    elif config.get("scheduler.params") is None:
        yield clash(
            config,
            (key,),
            f"{{named}} is `{name}`, but `scheduler.params` is not set",
            "`TypeError` when the engine creates the scheduler",
            'add `"params": {}` to `scheduler`',
        )


def _norm(config: DsConfig, stage: int | None, version: str | None) -> Iterator[Finding]:
    """What needs the norm of the gradients."""
    key = "zero_optimization.compute_grad_norm"
    if truth(config.get(key)) is not False or not has(key, version) or stage is None:
        return
    if stage not in {1, 2}:
        yield clash(
            config,
            (key,),
            f"{{named}} is false, which only ZeRO stages 1 and 2 support, and the stage is {stage}",
            "`ValidationError` when the config is read",
            "remove `compute_grad_norm`",
        )
        return
    clipping = config.get("gradient_clipping")
    others = {
        "gradient_clipping": isinstance(clipping, (int, float)) and clipping > 0,
        "zero_optimization.zenflow": config.get("zero_optimization.zenflow") not in (None, "auto"),
        "zero_optimization.offload_optimizer": is_offloaded(config),
    }
    for other in (name for name, used in others.items() if used):
        yield clash(
            config,
            (key, other),
            "{named} are incompatible: the second one needs the norm of the gradients",
            f"`ValueError` {_INITIALIZE}",
            f"remove `compute_grad_norm` or `{other}`",
        )


def _accumulation(config: DsConfig, stage: int | None, version: str | None) -> Iterator[Finding]:
    """Gradient accumulation that the script manages, and its data type."""
    key = "managed_gradient_accumulation"
    if config.get(key, True) in (False, 0) and has(key, version):
        overlap = truth(config.get("zero_optimization.overlap_comm")) is True and stage in {0, 1}
        others = {
            "zero_optimization.overlap_comm": overlap,
            "compile.deepcompile": truth(config.get("compile.deepcompile")) is True,
        }
        for other in (name for name, used in others.items() if used):
            yield clash(
                config,
                (key, other),
                "{named} are incompatible",
                _ASSERTS,
                f"remove one of them; `{other}` needs DeepSpeed to manage the accumulation",
            )
    key = "data_types.grad_accum_dtype"
    model, wanted = _model_type(config), _type(config.get(key))
    if stage != 0 or model is None or wanted is None or model == wanted:
        return
    if (model, wanted) == ("bf16", "fp32") and version and not at_least(version, _NO_MIX):
        return
    yield clash(
        config,
        (key,),
        f"{{named}} is {wanted}, but the model is {model}, and without ZeRO both must be the same",
        f"`NotImplementedError` {_INITIALIZE}",
        "remove it, or set `zero_optimization.stage` to 1",
    )


def _precision(config: DsConfig, stage: int | None, version: str | None) -> Iterator[Finding]:
    key = "data_types.param_dtype"
    model, wanted = _model_type(config), _type(config.get(key))
    if model and wanted and model != wanted and has(key, version):
        yield clash(
            config,
            (key,),
            f"{{named}} is {wanted}, but `fp16.enabled` and `bf16.enabled` make the model {model}",
            _ASSERTS,
            f"remove it, or enable {wanted}",
        )
    quantized = "zero_optimization.zero_quantized_weights"
    autocast = config.get("torch_autocast.enabled") not in (None, "auto", False, 0)
    if autocast and truth(config.get(quantized)) is True and has("torch_autocast", version):
        yield clash(
            config,
            ("torch_autocast.enabled", quantized),
            "{named} are incompatible",
            _ASSERTS,
            "disable one of them",
        )
    key = "zero_optimization.zero_quantized_gradients"
    if stage != _PARTITIONED or truth(config.get(key)) is not True or not has(key, version):
        return
    scatter = "zero_optimization.reduce_scatter"
    if truth(config.get(scatter)) is False:
        yield clash(
            config,
            (key, scatter),
            "{named} are incompatible: quantized gradients are reduced by scatter",
            _ASSERTS,
            "remove `reduce_scatter` or `zero_quantized_gradients`",
        )


def _zenflow(config: DsConfig, stage: int | None, version: str | None) -> Iterator[Finding]:
    """How often ZenFlow selects columns (runtime/zenflow/engine.py)."""
    section = "zero_optimization.zenflow"
    held = config.section(section)
    if stage not in _ZERO or not held or not has(section, version):
        return
    strategy, select = held.get("select_strategy", "auto"), held.get("select_interval", "auto")
    update = held.get("update_interval", "auto")
    numbers = isinstance(select, int) and isinstance(update, int)
    key = f"{section}.select_interval"
    if strategy == "auto" and isinstance(select, int):
        why, hint = 'needs `select_interval` "auto"', f"remove `{key}`"
    elif strategy != "auto" and select == "auto":
        why, hint = "needs a number as `select_interval`", f"set `{key}` to a number"
    elif strategy == "step" and numbers and select < update:
        why = "needs a `select_interval` that is not below `update_interval`"
        hint = f"set `{key}` to {update} or more"
    else:
        return
    yield clash(
        config,
        (key if select != "auto" else section,),
        f"{{named}}: the `select_strategy` {json.dumps(strategy)} {why}",
        f"an exception {_INITIALIZE}",
        hint,
    )


def _type(value: object) -> str | None:
    return next((name for name, words in _TYPES.items() if value in words), None)


def _model_type(config: DsConfig) -> str | None:
    """The type of the weights; None if a trainer decides."""
    switches = {"fp16": "fp16", "bf16": bf16_section(config)}
    if any(config.get(f"{section}.enabled") == "auto" for section in switches.values()):
        return None
    on = [kind for kind, section in switches.items() if enabled(config.section(section))]
    return "fp32" if not on else on[0] if len(on) == 1 else None
