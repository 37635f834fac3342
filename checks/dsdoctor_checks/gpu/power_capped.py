"""A GPU's power limit is below its default.

## Why it matters
Someone lowered the limit with `nvidia-smi -pl`, or a management controller did. Under load, the GPU
runs at lower clocks than the others, and their ranks wait for it. GeForce cards are often limited on
purpose, for heat or noise: the same limit on all cards of a model that is as it was set is not reported.

## What to do
If it was not lowered on purpose, restore the default: `nvidia-smi -i N -pl WATTS`.

## References
- nvml.h of CUDA 13.5: nvmlDeviceGetEnforcedPowerLimit, nvmlDeviceGetPowerManagementLimit,
  nvmlDeviceGetPowerManagementDefaultLimit
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpu,
    Gpus,
    Limits,
    Missing,
    RunNeeds,
    Scope,
    check,
    ok,
    warn,
)

from ._util import consumer, judged, named, selector, skip_unreported

CONDITION = Condition("power-capped", id="DSD610", scope=Scope.NODE, since="0.1")

#: Laptops adjust the limit to battery and temperature.
LAPTOP = ("Laptop", "Max-Q", " MX")


class PowerLimits(Limits, frozen=True, kw_only=True):
    """How far below its default a power limit may be.

    Attributes:
        min_percent: of the default.
    """

    min_percent: float = 98


def _on_purpose(gpu: Gpu, gpus: Sequence[Gpu]) -> bool:
    """Whether the owner of GeForce cards has set this limit, the same for all cards of the model.

    Their boards have no management controller that could lower it, as those of data centers have.
    """
    limit = gpu.health.power_limit_mw
    alike = {one.health.power_limit_mw for one in gpus if one.name == gpu.name}
    return consumer(gpu) and limit == gpu.health.power_limit_set_mw and alike == {limit}


@check(CONDITION)
def power_is_free(
    gpus: Gpus, run: RunNeeds, env: Environment | Missing, limits: PowerLimits
) -> Iterator[Finding]:
    """Compares the enforced limit with the card's default."""
    found = judged(gpus, run, env)
    for gpu in found:
        limit, default = gpu.health.power_limit_mw, gpu.health.power_limit_default_mw
        if limit is None or not default or limit * 100 >= default * limits.min_percent:
            continue
        if any(part in (gpu.name or "") for part in LAPTOP):
            yield ok("laptops adjust the power limit on their own", gpu=gpu.index, limit_mw=limit)
            continue
        if _on_purpose(gpu, found):
            yield ok("the limit of all such cards was set", gpu=gpu.index, limit_mw=limit)
            continue
        yield warn(
            f"{named(gpu)} is limited to {limit // 1000} W, but its default is {default // 1000} W",
            effect="its clocks under load are lower than they could be",
            hint=f"run `nvidia-smi -i {selector(gpu)} -pl {default // 1000}` as root, unless the limit "
            "is intended",
            gpu=gpu.index,
            uuid=gpu.uuid,
            limit_w=limit // 1000,
            default_w=default // 1000,
            min_percent=limits.min_percent,
        )
    yield from skip_unreported(
        found, lambda gpu: gpu.health.power_limit_mw, "health.power_limit_mw", "the power limit"
    )
