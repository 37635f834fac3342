"""A GPU is at the temperature where it slows down.

## Why it matters
At its slowdown temperature a GPU halves its clocks; slightly above, it shuts down. A GPU that is hot
before the job starts gets there at once.

## What to do
Check fans, dust, airflow and room temperature. Leave space between workstation cards.

## References
- nvml.h of CUDA 13.5: nvmlDeviceGetTemperatureThreshold
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Limits,
    Missing,
    RunNeeds,
    Scope,
    check,
    fail,
    warn,
)

from ._util import judged, named, skip_unreported

CONDITION = Condition("gpu-overheating", id="DSD609", scope=Scope.NODE, since="0.1")


class HeatLimits(Limits, frozen=True, kw_only=True):
    """Distance to the slowdown temperature.

    Attributes:
        margin_c: degrees Celsius below the slowdown temperature at which to warn.
    """

    margin_c: float = 2


@check(CONDITION)
def gpus_are_cool(
    gpus: Gpus, run: RunNeeds, env: Environment | Missing, limits: HeatLimits
) -> Iterator[Finding]:
    """Compares GPU and memory temperature with the card's own limits."""
    found = judged(gpus, run, env)
    for gpu in found:
        health = gpu.health
        now, slow = health.temperature_c, health.temperature_slowdown_c
        memory, most = health.temperature_memory_c, health.temperature_memory_max_c
        if now is not None and slow and now >= slow - limits.margin_c:
            say = fail if now >= slow else warn
            what = f"{named(gpu)} is at {now} °C, but slows down at {slow} °C"
        elif memory is not None and most and memory >= most:
            say = warn
            what = f"the memory of {named(gpu)} is at {memory} °C, but its maximum is {most} °C"
        else:
            continue
        yield say(
            what,
            effect="the GPU halves its clocks, and shuts down if it gets hotter",
            hint="check fans, airflow and room temperature",
            gpu=gpu.index,
            uuid=gpu.uuid,
            temperature_c=now,
            slowdown_c=slow,
            memory_c=memory,
            memory_max_c=most,
            margin_c=limits.margin_c,
        )
    yield from skip_unreported(
        found,
        lambda gpu: gpu.health.temperature_slowdown_c,
        "health.temperature_slowdown_c",
        "a slowdown temperature",
    )
