"""Without ZeRO, DeepSpeed divides fp16 gradients by a loss scale that it did not apply.

## Why it matters
Since DeepSpeed 0.18.3, `engine.backward` multiplies the loss by the loss scale only for ZeRO's
optimizers. The fp16 optimizer without ZeRO still divides the gradients by that scale, which starts at
65536. The gradients are too small by that factor, and small ones underflow in fp16. There is no
error: SGD barely moves, Adam takes smaller steps than it should, and gradient clipping never takes
effect.

## What to do
Set `zero_optimization.stage` to 1, which needs no more memory, or train in bf16. If neither is
possible, set `fp16.loss_scale` to 1.

## References
- deepspeed/runtime/engine.py, `backward`: 0.18.2 and 0.18.3, and the same up to 0.19.8 (2026-11-22)
- https://github.com/deepspeedai/DeepSpeed/pull/8393 (open)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DeepSpeedInstall,
    DsConfig,
    Finding,
    Observation,
    Scope,
    check,
    ok,
    warn,
)
from dsdoctor_checks._util import at_least

from ._tables import enabled, stage_of

CONDITION = Condition(
    "fp16-loss-unscaled",
    id="DSD1313",
    scope=Scope.JOB,
    since="0.1",
    names=(Observation.LOSS_UNSCALED,),
)

HINT = "set `zero_optimization.stage` to 1, or train in bf16"

#: The first release that does so, and the first for which this is not known.
_FIRST, _UNKNOWN = "0.18.3", "0.19.9"


@check(CONDITION)
def the_loss_is_scaled(config: DsConfig, deepspeed: DeepSpeedInstall) -> Iterator[Finding]:
    """Warns about fp16 without ZeRO in a release that does not scale its loss."""
    release = deepspeed.version
    if config.parsed is None or release is None:
        return
    affected = at_least(release, _FIRST) and not at_least(release, _UNKNOWN)
    fp16 = config.section("fp16")
    plain = (
        enabled(fp16)
        and stage_of(config.section("zero_optimization")) == 0
        and fp16.get("loss_scale") != 1
        and not enabled(config.section("torch_autocast"))
    )
    if not (affected and plain):
        yield ok()
        return
    key = "fp16.enabled"
    yield warn(
        f"{config.named(key)} is true without ZeRO, where DeepSpeed {release} divides the"
        " gradients by a loss scale that it did not apply to the loss",
        effect="gradients are too small by a factor of the loss scale (initially 65536), without any"
        " error",
        hint=HINT,
        key=key,
        line=config.lines.get(key),
        deepspeed=release,
    )
