"""The config selects an optimizer that neither DeepSpeed nor torch provides.

## Why it matters
DeepSpeed looks the name up only when the engine starts, after the model has been loaded. Its own
optimizer names are not case-sensitive. Any other name must be a class of `torch.optim`, with the
same capitalization. DeepSpeed 0.19.7 removed the 1-bit optimizers: the config is accepted, and the
engine fails.

A dotted name (`bitsandbytes.optim.AdamW8bit`) is not checked. DeepSpeed cannot import it, so the
script must read the name and create the optimizer itself. Any other unknown name is checked only
where DeepSpeed is known to create the optimizer: with the Hugging Face Trainer and Accelerate, or
if it is a typo of a known name or a class of DeepSpeed. A script that passes its own optimizer may
put anything there.

## What to do
Correct the name. To use an optimizer of your own, remove `optimizer` from the config and pass it to
`deepspeed.initialize(optimizer=...)`.

## References
deepspeed/runtime/engine.py (`_do_sanity_check`, `_configure_basic_optimizer`),
deepspeed/runtime/config.py
(`DEEPSPEED_OPTIMIZERS`), https://docs.pytorch.org/docs/stable/optim.html
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
    RunNeeds,
    Scope,
    Signature,
    check,
    fail,
    skip,
)
from dsdoctor_checks._util import at_least

from ._repairable import offered
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


#: Frameworks that leave it to DeepSpeed to create the optimizer that the config selects.
_BUILT_BY_DEEPSPEED = frozenset({"hf", "accelerate"})
#: DeepSpeed's own classes, which have other names in the config (deepspeed 0.19.8 ops/, engine.py).
_CLASSES = {
    "fusedadam": "AdamW",
    "deepspeedcpuadam": "AdamW",
    "fusedlamb": "Lamb",
    "fusedlion": "Lion",
    "deepspeedcpulion": "Lion",
    "deepspeedcpuadagrad": "Adagrad",
}


def _closest_class(name: str) -> str | None:
    return _CLASSES.get(name.lower()) or nearest(
        name, (*TORCH_OPTIMIZERS, "Lamb", "Lion", "MuAdam")
    )


@check(CONDITION)
def optimizer_exists(
    config: DsConfig, deepspeed: DeepSpeedInstall | Missing, run: RunNeeds
) -> Iterator[Finding]:
    """Fails when the engine would not find the optimizer."""
    yield from offered(config, _unknown_optimizer(config, deepspeed, run))


def _unknown_optimizer(
    config: DsConfig, deepspeed: DeepSpeedInstall | Missing, run: RunNeeds
) -> Iterator[Finding]:
    name = config.get("optimizer.type")
    if not isinstance(name, str) or name == "auto":
        return
    if name.lower() in OPTIMIZERS or name in TORCH_OPTIMIZERS:
        return
    if "." in name and run.framework not in _BUILT_BY_DEEPSPEED:
        yield skip(
            f"{config.named('optimizer.type')} is `{name}`, which only the script itself can import",
            name=name,
        )
        return
    version = deepspeed.version if isinstance(deepspeed, DeepSpeedInstall) else None
    removed = name.lower() in REMOVED_OPTIMIZERS
    if removed and version is not None and not at_least(version, REMOVED_SINCE):
        return
    meant = None if removed else _closest_class(name)
    if newer_than_table(version) and not meant and not removed:
        return
    if not meant and not removed and run.framework not in _BUILT_BY_DEEPSPEED:
        yield skip(
            f"{config.named('optimizer.type')} is `{name}`, which is valid only if the script"
            " creates the optimizer itself",
            name=name,
        )
        return
    shown = version or TABLE_VERSION
    tail = f"; the closest name is `{meant}`" if meant else ""
    own = "pass your own optimizer to `deepspeed.initialize` and remove `optimizer`"
    yield fail(
        f"{config.named('optimizer.type')} is `{name}`, but neither DeepSpeed {shown} nor"
        f" `torch.optim` has an optimizer of that name{tail}",
        effect="the engine stops when it creates the optimizer, after the model has been loaded",
        hint=f"change it to `{meant}`" if meant else f"use `AdamW`, or {own}",
        name=name,
        line=config.lines.get("optimizer.type"),
        meant=meant,
        deepspeed=shown,
    )


HINT = "correct `optimizer.type`, or remove it and pass an optimizer to `deepspeed.initialize`"

SIGNATURES = (
    Signature(
        pattern="not a supported DeepSpeed Optimizer",
        source="deepspeed 0.19.8 runtime/engine.py",
        examples=("AssertionError: AdamV is not a supported DeepSpeed Optimizer",),
        level=Level.STRONG,
    ),
)
