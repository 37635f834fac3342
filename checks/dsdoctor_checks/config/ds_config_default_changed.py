"""A default that this config relies on has changed between DeepSpeed releases.

## Why it matters
DeepSpeed 0.19.3 changed the default of `gradient_clipping` from 0.0 to 1.0 and that of
`bf16.check_grad_overflow` from false to true. DeepSpeed 0.19.5 changed `pin_memory` of both offload
sections from false to true. A config that omits them trains differently after an upgrade. With
`compute_grad_norm` false it no longer starts, because clipping needs the norm.

## What to do
Set the values that you intend explicitly.

## References
deepspeed/runtime/constants.py, https://github.com/deepspeedai/DeepSpeed/pull/8068,
https://github.com/deepspeedai/DeepSpeed/pull/8035,
https://github.com/deepspeedai/DeepSpeed/pull/8207
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import Condition, DeepSpeedInstall, DsConfig, Finding, Scope, check, fail, ok
from dsdoctor_checks._util import at_least

from ._tables import enabled, stage_of

CONDITION = Condition("ds-config-default-changed", id="DSD1310", scope=Scope.JOB, since="0.1")

_CLIPPING = "0.19.3"
_PINNING = "0.19.5"


@check(CONDITION)
def defaults_are_as_before(config: DsConfig, deepspeed: DeepSpeedInstall) -> Iterator[Finding]:
    """Fails where a new default breaks the config; otherwise lists the new defaults in force."""
    known = deepspeed.version is not None
    if config.parsed is None or not known or not at_least(deepspeed.version, _CLIPPING):
        return
    zero = config.section("zero_optimization")
    clipping_left = "gradient_clipping" not in config.parsed
    key = "zero_optimization.compute_grad_norm"
    if clipping_left and zero.get("compute_grad_norm") is False and stage_of(zero) in {1, 2}:
        yield fail(
            f"{config.named(key)} is false and `gradient_clipping` is not set, but DeepSpeed"
            f" {deepspeed.version} clips at 1.0 by default, which needs the norm",
            effect="`ValueError` in `deepspeed.initialize`",
            hint='add `"gradient_clipping": 0.0`',
            line=config.lines.get(key),
            default=1.0,
            deepspeed=deepspeed.version,
            since=_CLIPPING,
        )
        return
    new: dict[str, Any] = {}
    if clipping_left:
        new["gradient_clipping"] = 1.0
    if enabled(config.section("bf16")) and "check_grad_overflow" not in config.section("bf16"):
        new["bf16.check_grad_overflow"] = True
    if at_least(deepspeed.version, _PINNING):
        for name in ("offload_optimizer", "offload_param"):
            section = config.section(f"zero_optimization.{name}")
            if section.get("device") in {"cpu", "nvme"} and "pin_memory" not in section:
                new[f"zero_optimization.{name}.pin_memory"] = True
    if new:
        named = ", ".join(f"`{key}` {value}" for key, value in new.items())
        yield ok(f"defaults of DeepSpeed {deepspeed.version} in force: {named}", defaults=new)
