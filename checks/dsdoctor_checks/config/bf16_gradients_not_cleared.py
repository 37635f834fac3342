"""Without ZeRO, DeepSpeed does not clear bf16 gradients after a step.

## Why it matters
From release 0.17.6 to 0.18.5, the engine leaves bf16 gradients without ZeRO to the optimizer, and only
that of `FusedAdam` clears them. With any other optimizer each step adds to the gradients of all steps
before it, so that they grow for the whole run. Releases 0.18.3 to 0.18.5 also divide them by a loss
scale of 65536 that they did not apply to the loss, so SGD barely moves. No error is raised.

## What to do
Set `zero_optimization.stage` to 1, which needs no more memory, or upgrade DeepSpeed to 0.18.6 or newer.
If neither is possible, use the optimizer `Adam` or `AdamW` without `torch_adam`, for which DeepSpeed uses
its own `FusedAdam`.

## References
- deepspeed/runtime/engine.py, `_take_model_step` and `_do_optimizer_sanity_check`: 0.17.5 to 0.18.6 (2026-11-23)
- https://github.com/deepspeedai/DeepSpeed/pull/7515 and https://github.com/deepspeedai/DeepSpeed/pull/7839
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dsdoctor.api import (
    Condition,
    DeepSpeedInstall,
    DsConfig,
    Finding,
    Scope,
    check,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import at_least

from ._tables import enabled, stage_of

CONDITION = Condition("bf16-gradients-not-cleared", id="DSD1314", scope=Scope.JOB, since="0.1")

HINT = "set `zero_optimization.stage` to 1, or upgrade DeepSpeed to 0.18.6 or newer"

#: The first release that does so (pull request 7515), the first that divides by a loss scale too,
#: and the first that does neither (pull request 7839).
_FIRST, _SCALED, _FIXED = "0.17.6", "0.18.3", "0.18.6"
#: Optimizers of a config whose wrapper clears gradients in its step (`_configure_fp16_optimizer`).
_FUSED = frozenset({"adam", "adamw", "onebitadam", "zerooneadam"})
_SCALE = 65536


@check(CONDITION)
def gradients_are_cleared(config: DsConfig, deepspeed: DeepSpeedInstall) -> Iterator[Finding]:
    """Warns about bf16 without ZeRO in a release that keeps gradients from step to step."""
    release = deepspeed.version
    if config.parsed is None or release is None:
        return
    affected = at_least(release, _FIRST) and not at_least(release, _FIXED)
    if not (affected and _sums_gradients_in_bf16(config)):
        yield ok()
        return
    optimizer = config.section("optimizer")
    kind = optimizer.get("type")
    if not isinstance(kind, str):
        yield skip(
            f"DeepSpeed {release} clears bf16 gradients without ZeRO for its `FusedAdam` only, and"
            " the config selects no optimizer"
        )
        return
    if _fused(kind, optimizer):
        yield ok()
        return
    key = "bf16.enabled"
    effect = "each step adds to the gradients of all steps before it; no error is raised"
    if scaled := at_least(release, _SCALED):
        effect += f", and they are divided by {_SCALE}"
    yield warn(
        f"{config.named(key)} is true without ZeRO, where DeepSpeed {release} does not clear the"
        f" gradients of `{kind}` after a step",
        effect=effect,
        hint=HINT,
        key=key,
        line=config.lines.get(key),
        optimizer=kind,
        deepspeed=release,
        **({"loss_scale": _SCALE} if scaled else {}),
    )


def _sums_gradients_in_bf16(config: DsConfig) -> bool:
    """Whether bf16 trains without ZeRO, and gradients are summed in bf16."""
    types = config.section("data_types")
    return (
        (enabled(config.section("bf16")) or enabled(config.section("bfloat16")))
        and stage_of(config.section("zero_optimization")) == 0
        and types.get("grad_accum_dtype") in (None, "bf16", "bfloat16")
        and not enabled(config.section("torch_autocast"))
    )


def _fused(kind: str, optimizer: Mapping[str, Any]) -> bool:
    """Whether DeepSpeed uses its own `FusedAdam` for it."""
    params = optimizer.get("params")
    torch_s = isinstance(params, Mapping) and params.get("torch_adam") is True
    return kind.lower() in _FUSED and not torch_s
