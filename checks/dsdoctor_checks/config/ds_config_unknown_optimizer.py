"""The config names an optimizer that neither DeepSpeed nor torch has.

## Why it matters
The name is looked up only when the engine makes the optimizer, after the model has been loaded.
DeepSpeed's own names may be written in any case; every other name must be a class of `torch.optim`,
letter by letter. The 1-bit optimizers pass the config of 0.19.7 and later, and fail in the engine.

## What to do
Correct the name, or take `optimizer` out and hand an optimizer to `deepspeed.initialize`.

## References
deepspeed/runtime/engine.py (`_configure_basic_optimizer`), deepspeed/runtime/config.py
(`DEEPSPEED_OPTIMIZERS`), https://docs.pytorch.org/docs/stable/optim.html
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
from dsdoctor_checks._util import at_least

from ._tables import (
    OPTIMIZERS,
    REMOVED_OPTIMIZERS,
    REMOVED_SINCE,
    TABLE_VERSION,
    TORCH_OPTIMIZERS,
    nearest,
    newer_than_table,
)

CONDITION = Condition(
    "ds-config-unknown-optimizer",
    id="DSD1308",
    scope=Scope.JOB,
    since="0.1",
    fixes=("repair-ds-config",),
)


@check(CONDITION)
def optimizer_exists(config: DsConfig, deepspeed: DeepSpeedInstall | Missing) -> Iterator[Finding]:
    """Speaks when the engine would not find the optimizer."""
    name = config.get("optimizer.type")
    if not isinstance(name, str) or name == "auto":
        return
    if name.lower() in OPTIMIZERS or name in TORCH_OPTIMIZERS:
        return
    version = deepspeed.version if isinstance(deepspeed, DeepSpeedInstall) else None
    removed = name.lower() in REMOVED_OPTIMIZERS
    if removed and version is not None and not at_least(version, REMOVED_SINCE):
        return
    meant = None if removed else nearest(name, (*TORCH_OPTIMIZERS, "Lamb", "Lion", "MuAdam"))
    if newer_than_table(version) and not meant and not removed:
        return
    told = version or TABLE_VERSION
    tail = f", but `{meant}` is" if meant else " or of `torch.optim`"
    yield fail(
        f"{config.named('optimizer.type')} is `{name}`, which is no optimizer of DeepSpeed {told}"
        + tail,
        effect="the engine stops when it makes the optimizer, after the model has been loaded",
        hint=f"write `{meant}`" if meant else "write `AdamW`, or another name of `torch.optim`",
        name=name,
        line=config.lines.get("optimizer.type"),
        meant=meant,
        deepspeed=told,
    )
