"""The config names a scheduler that neither DeepSpeed nor torch has.

## Why it matters
The name is looked up only when the engine makes the scheduler: DeepSpeed's own five, then the
classes of `torch.optim.lr_scheduler`, letter by letter.

## What to do
Correct the name, or take `scheduler` out and hand one to `deepspeed.initialize`.

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
    Missing,
    Scope,
    check,
    fail,
)

from ._tables import SCHEDULERS, TORCH_SCHEDULERS, nearest, newer_than_table

CONDITION = Condition("ds-config-unknown-scheduler", id="DSD1309", scope=Scope.JOB, since="0.1")


@check(CONDITION)
def scheduler_exists(config: DsConfig, deepspeed: DeepSpeedInstall | Missing) -> Iterator[Finding]:
    """Speaks when the engine would not find the scheduler."""
    name = config.get("scheduler.type")
    known = (*SCHEDULERS, *TORCH_SCHEDULERS)
    if not isinstance(name, str) or name == "auto" or name in known:
        return
    version = deepspeed.version if isinstance(deepspeed, DeepSpeedInstall) else None
    meant = nearest(name, known)
    if newer_than_table(version) and not meant:
        return
    tail = f", but `{meant}` is" if meant else " or of `torch.optim.lr_scheduler`"
    yield fail(
        f"{config.named('scheduler.type')} is `{name}`, which is no scheduler of DeepSpeed{tail}",
        effect="the engine stops when it makes the scheduler, after the model has been loaded",
        hint=f"write `{meant}`" if meant else f"write one of {', '.join(SCHEDULERS)}",
        name=name,
        line=config.lines.get("scheduler.type"),
        meant=meant,
    )
