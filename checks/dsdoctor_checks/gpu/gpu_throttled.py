"""A limit keeps a GPU's clocks low.

## Why it matters
A hardware slowdown halves the clocks or worse: the card is too hot, or its power supply signals
overload. All ranks wait for the slowest GPU. Idle clocks and the power cap under load are normal and
not reported. A clock that somebody has locked (`nvidia-smi -lgc`, `-ac`) stays low under load, too.

## What to do
Reset locked clocks with `nvidia-smi -rgc` and `-rac`. Check cooling (fans, dust, room temperature), power cables and the power supply.

## References
- nvml.h of CUDA 13.5: nvmlClocksEventReason*
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    EventReason,
    Finding,
    Gpu,
    Gpus,
    Missing,
    RunNeeds,
    Scope,
    check,
    fail,
    warn,
)

from ._util import judged, named, selector, skip_unreported

CONDITION = Condition("gpu-throttled", id="DSD608", scope=Scope.NODE, since="0.1")

#: At this utilization, a clock is not low because there is little to do.
BUSY_PERCENT = 50
#: Hardware reasons, as named in messages.
HARDWARE = {
    EventReason.HW_THERMAL: "its temperature",
    EventReason.HW_POWER_BRAKE: "the power supply",
    EventReason.HW_SLOWDOWN: "the hardware",
}


def _suspects(reasons: int) -> str:
    """What to look at first.

    >>> _suspects(EventReason.HW_POWER_BRAKE | EventReason.HW_SLOWDOWN)
    'the power supply and its cables'
    """
    if reasons & (EventReason.HW_THERMAL | EventReason.SW_THERMAL):
        return "fans, airflow and room temperature"
    if reasons & EventReason.HW_POWER_BRAKE:
        return "the power supply and its cables"
    return "cooling and power supply"


def _locked(gpu: Gpu) -> bool:
    """Whether it works at less than half of its clock because of its settings."""
    set_low = (gpu.health.event_reasons or 0) & EventReason.APPLICATION_CLOCKS
    clock, most = gpu.clock_sm_mhz, gpu.clock_sm_max_mhz
    if not set_low or not clock or not most or not gpu.utilization_gpu_percent:
        return False
    return gpu.utilization_gpu_percent >= BUSY_PERCENT and clock < most / 2


@check(CONDITION)
def clocks_are_free(gpus: Gpus, run: RunNeeds, env: Environment | Missing) -> Iterator[Finding]:
    """Judges why clocks are low; on an idle GPU only heat counts."""
    found = judged(gpus, run, env)
    for gpu in found:
        reasons = gpu.health.event_reasons or 0
        idle = bool(reasons & EventReason.IDLE)
        hard = [text for bit, text in HARDWARE.items() if reasons & bit]
        soft = bool(reasons & EventReason.SW_THERMAL)
        if idle and not reasons & EventReason.HW_THERMAL:
            continue
        if not hard and not soft:
            if _locked(gpu):
                yield warn(
                    f"{named(gpu)} is in use, but settings keep its SM clock at {gpu.clock_sm_mhz} MHz,"
                    f" less than half of its {gpu.clock_sm_max_mhz} MHz",
                    effect="this GPU, and every rank that waits for it, runs several times slower",
                    hint=f"run `nvidia-smi -i {selector(gpu)} -rgc` and `nvidia-smi -i {selector(gpu)} -rac` as root",
                    gpu=gpu.index,
                    uuid=gpu.uuid,
                    event_reasons=hex(reasons),
                    sm_mhz=gpu.clock_sm_mhz,
                    sm_max_mhz=gpu.clock_sm_max_mhz,
                )
            continue
        clock = "" if gpu.clock_sm_mhz is None else f", SM at {gpu.clock_sm_mhz} MHz"
        why = hard[0] if hard else "the software thermal limit"
        yield (fail if hard and not idle else warn)(
            f"the clocks of {named(gpu)} are limited by {why} "
            f"(reasons {reasons:#x}{clock}), but a healthy GPU runs unthrottled",
            effect="this GPU, and every rank that waits for it, runs slower",
            hint=f"check {_suspects(reasons)}; `nvidia-smi -q -d PERFORMANCE` shows whether the limit is still active",
            gpu=gpu.index,
            uuid=gpu.uuid,
            event_reasons=hex(reasons),
            sm_mhz=gpu.clock_sm_mhz,
            sm_max_mhz=gpu.clock_sm_max_mhz,
            temperature_c=gpu.health.temperature_c,
        )
    yield from skip_unreported(
        found, lambda gpu: gpu.health.event_reasons, "health.event_reasons", "why clocks are low"
    )
