"""Which ops a run builds, and how a missing build tool is reported."""

from __future__ import annotations

from dsdoctor.api import (
    DeepSpeedInstall,
    DeepSpeedLive,
    ExtensionCache,
    Finding,
    Missing,
    RunNeeds,
    Why,
    fail,
    warn,
)
from dsdoctor_checks._util import at_least
from dsdoctor_checks.cuda import _ops

#: The ZeRO stage that can swap to NVMe.
PARTITIONED = 3


def section(value: object, key: str) -> dict[str, object]:
    """An object inside a config; empty if it is missing or not an object."""
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def needed_ops(config: dict[str, object], deepspeed: str | None = None) -> tuple[str, ...]:
    """Ops that a config makes DeepSpeed load; only ZeRO-3 uses NVMe.

    >>> needed_ops({"optimizer": {"type": "AdamW"}})
    ('fused_adam',)
    >>> needed_ops({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}})
    ('cpu_adam',)
    >>> needed_ops({"compile": {"deepcompile": True}})
    ('dc',)
    """
    none = Missing(why=Why.NOT_ASKED, detail="")
    swaps = section(config, "zero_optimization").get("stage") == PARTITIONED
    ops = _ops.needed_ops(config, deepspeed, none)
    return tuple(op.name for op in ops if op.name != "async_io" or swaps)


def jit_ops(
    run: RunNeeds,
    deepspeed: DeepSpeedInstall | Missing,
    cache: ExtensionCache | Missing,
    own: DeepSpeedLive | Missing | None = None,
) -> tuple[str, ...] | None:
    """Ops that the first run has to compile; None if there is no config to derive them from.

    None of them is left for a job that does not use DeepSpeed.

    Args:
        run: the job and its config.
        deepspeed: ops that were built with it.
        cache: ops that an earlier run built.
        own: the accelerator that DeepSpeed chose.
    """
    if run.config is None and run.without_deepspeed:
        return ()
    done: set[str] = set()
    if isinstance(deepspeed, DeepSpeedInstall):
        done.update(deepspeed.prebuilt)
    if isinstance(cache, ExtensionCache):
        done.update(cache.built)
    first = tuple(op for op in ops_of_ranks(run, deepspeed, own) if op not in done)
    if run.config is None:
        return first or None
    return first + tuple(op for op in needed_ops(run.config) if op not in done)


#: The release that built the first op for collectives on CPUs (its comm/torch.py, build_shm_op).
_SHARED = "0.14.2"


def ops_of_ranks(
    run: RunNeeds, deepspeed: DeepSpeedInstall | Missing, own: DeepSpeedLive | Missing | None
) -> tuple[str, ...]:
    """Ops that every rank of a job on CPUs loads when it joins, whatever its config contains."""
    on_cpu = isinstance(own, DeepSpeedLive) and own.accelerator == "cpu"
    known = isinstance(deepspeed, DeepSpeedInstall) and at_least(deepspeed.version, _SHARED)
    return ("deepspeed_shm_comm",) if run.command and on_cpu and known else ()


def tool_unusable(
    ops: tuple[str, ...] | None, message: str, *, effect: str, hint: str, **evidence: object
) -> Finding:
    """Reports an unusable build tool: a failure if a build is certain, else a warning."""
    say = fail if ops else warn
    names = list(ops or ())
    return say(message, effect=effect, hint=hint, ops=names, **evidence)
