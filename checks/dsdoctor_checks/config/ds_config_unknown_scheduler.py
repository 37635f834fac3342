"""The config selects a scheduler that neither DeepSpeed nor torch provides.

## Why it matters
DeepSpeed looks the name up only when the engine creates the scheduler, after the model has been
loaded. It tries its own five schedulers, then the classes of `torch.optim.lr_scheduler`. The names
are case-sensitive.

## What to do
Correct the name. To use a scheduler of your own, remove `scheduler` from the config and pass it to
`deepspeed.initialize(lr_scheduler=...)`.

## References
deepspeed/runtime/lr_schedules.py, deepspeed/runtime/engine.py (`_scheduler_from_config`),
https://docs.pytorch.org/docs/stable/optim.html
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DeepSpeedInstall,
    DsConfig,
    Finding,
    Level,
    Missing,
    Scope,
    Signature,
    check,
    fail,
)

from ._tables import SCHEDULERS, TORCH_SCHEDULERS, nearest, newer_than_table

CONDITION = Condition("ds-config-unknown-scheduler", id="DSD1309", scope=Scope.JOB, since="0.1")


@check(CONDITION)
def scheduler_exists(config: DsConfig, deepspeed: DeepSpeedInstall | Missing) -> Iterator[Finding]:
    """Fails when the engine would not find the scheduler."""
    name = config.get("scheduler.type")
    known = (*SCHEDULERS, *TORCH_SCHEDULERS)
    if not isinstance(name, str) or name == "auto" or name in known:
        return
    version = deepspeed.version if isinstance(deepspeed, DeepSpeedInstall) else None
    meant = nearest(name, known)
    if newer_than_table(version) and not meant:
        return
    tail = f"; the closest name is `{meant}`" if meant else ""
    choices = ", ".join(f"`{one}`" for one in SCHEDULERS)
    yield fail(
        f"{config.named('scheduler.type')} is `{name}`, but neither DeepSpeed nor"
        f" `torch.optim.lr_scheduler` has a scheduler of that name{tail}",
        effect="the engine stops when it creates the scheduler, after the model has been loaded",
        hint=f"change it to `{meant}`" if meant else f"use one of {choices}",
        name=name,
        line=config.lines.get("scheduler.type"),
        meant=meant,
    )


HINT = "correct `scheduler.type`, or remove it and pass a scheduler to `deepspeed.initialize`"

SIGNATURES = (
    Signature(
        pattern="does not recognize LR scheduler",
        source="deepspeed 0.19.8 runtime/engine.py",
        examples=("AssertionError: DeepSpeed does not recognize LR scheduler Foo",),
        level=Level.STRONG,
    ),
)
