"""Which ops a run would build, and for which tool the absence is judged."""

from __future__ import annotations

from dsdoctor.api import (
    DeepSpeedInstall,
    ExtensionCache,
    Finding,
    Missing,
    RunNeeds,
    fail,
    warn,
)

#: The ZeRO stage that can swap to NVMe.
PARTITIONED = 3

#: Ops of the optimizers that DeepSpeed builds itself: name in the config, lower case, to the op
#: with its state in GPU memory and the op with its state in host memory
#: (DeepSpeed 0.19.8 runtime/engine.py, `_configure_basic_optimizer`).
OPTIMIZER_OPS = {
    "adam": ("fused_adam", "cpu_adam"),
    "adamw": ("fused_adam", "cpu_adam"),
    "lamb": ("fused_lamb", "fused_lamb"),
    "lion": ("fused_lion", "cpu_lion"),
    "adagrad": ("", "cpu_adagrad"),
}


def section(value: object, key: str) -> dict[str, object]:
    """An object inside a config, empty when it is not there or no object."""
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def _optimizer_op(config: dict[str, object], *, offload: bool) -> str:
    optimizer = section(config, "optimizer")
    name = optimizer.get("type")
    if not isinstance(name, str):
        # A trainer or the script brings the optimizer; under offload it has to be cpu_adam.
        return "cpu_adam" if offload else ""
    on_gpu, on_cpu = OPTIMIZER_OPS.get(name.lower(), ("", ""))
    if section(optimizer, "params").get("torch_adam") is True:
        return ""
    return on_cpu if offload else on_gpu


def needed_ops(config: dict[str, object]) -> tuple[str, ...]:
    """Ops that a config makes DeepSpeed load.

    >>> needed_ops({"optimizer": {"type": "AdamW"}})
    ('fused_adam',)
    >>> needed_ops({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}})
    ('cpu_adam',)
    """
    zero = section(config, "zero_optimization")
    devices = [section(zero, f"offload_{part}").get("device") for part in ("optimizer", "param")]
    offload = devices[0] in ("cpu", "nvme")
    ops = [_optimizer_op(config, offload=offload)]
    if zero.get("stage") == PARTITIONED and "nvme" in devices:
        ops.append("async_io")
    return tuple(op for op in ops if op)


def jit_ops(
    run: RunNeeds,
    deepspeed: DeepSpeedInstall | Missing,
    cache: ExtensionCache | Missing,
) -> tuple[str, ...] | None:
    """Ops that the first run has to compile; None when no config tells which it needs."""
    if run.config is None:
        return None
    done: set[str] = set()
    if isinstance(deepspeed, DeepSpeedInstall):
        done.update(deepspeed.prebuilt)
    if isinstance(cache, ExtensionCache):
        done.update(cache.built)
    return tuple(op for op in needed_ops(run.config) if op not in done)


def lacking(
    ops: tuple[str, ...] | None, message: str, *, effect: str, hint: str, **evidence: object
) -> Finding:
    """A tool that a build needs is not usable: a failure where a build is certain."""
    say = fail if ops else warn
    names = list(ops or ())
    return say(message, effect=effect, hint=hint, ops=names, **evidence)
