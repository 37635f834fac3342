"""GPU memory has uncorrectable errors.

## Why it matters
An uncorrectable error kills the program that touches the bad memory. Errors counted since the driver
was loaded may recur until the row is remapped. SRAM errors cannot be remapped.

## What to do
Reset the GPU or reboot, so that the bad row is remapped. If the SRAM error count exceeds the
threshold, replace the card.

## References
- https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/
- nvml.h of CUDA 13.5: nvmlDeviceGetTotalEccErrors, nvmlDeviceGetSramEccErrorStatus
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
)
from dsdoctor_checks._util import amount

from ._util import judged, named, selector, skip_unreported

CONDITION = Condition("ecc-uncorrectable", id="DSD603", scope=Scope.NODE, since="0.1")


class EccLimits(Limits, frozen=True, kw_only=True):
    """Tolerated uncorrectable errors.

    Attributes:
        max_volatile_errors: since the driver was loaded.
        max_sram_errors: in SRAM, over the life of the card; above it NVIDIA replaces cards.
    """

    max_volatile_errors: float = 0
    max_sram_errors: float = 4


@check(CONDITION)
def memory_is_sound(
    gpus: Gpus, run: RunNeeds, env: Environment | Missing, limits: EccLimits
) -> Iterator[Finding]:
    """Judges error counts; earlier DRAM errors were dealt with by row remapping."""
    found = judged(gpus, run, env)
    for gpu in found:
        health = gpu.health
        volatile, sram = health.ecc_volatile_uncorrected, health.sram_aggregate_uncorrected
        what = ""
        if health.sram_threshold_exceeded or (sram or 0) > limits.max_sram_errors:
            what = (
                f"{named(gpu)} has {amount(sram or 0, 'uncorrectable SRAM error')} over its life, but "
                f"NVIDIA's limit is {limits.max_sram_errors:g}"
                if (sram or 0) > limits.max_sram_errors
                else f"the driver reports that {named(gpu)} has exceeded NVIDIA's limit of "
                "uncorrectable SRAM errors"
            )
            hint = "replace the card"
        elif (volatile or 0) > limits.max_volatile_errors:
            what = (
                f"{named(gpu)} has {amount(volatile or 0, 'uncorrectable memory error')} since the driver "
                f"was loaded, but {limits.max_volatile_errors:g} are expected"
            )
            hint = f"run `nvidia-smi --gpu-reset -i {selector(gpu)}` as root, or reboot"
        if what:
            yield fail(
                what,
                effect="a program that touches the bad memory fails with a CUDA error (Xid 48 or 95)",
                hint=hint,
                gpu=gpu.index,
                uuid=gpu.uuid,
                volatile_uncorrected=volatile,
                aggregate_uncorrected=health.ecc_aggregate_uncorrected,
                sram_aggregate_uncorrected=sram,
                sram_threshold_exceeded=health.sram_threshold_exceeded,
                max_volatile_errors=limits.max_volatile_errors,
                max_sram_errors=limits.max_sram_errors,
            )
    yield from skip_unreported(
        found,
        lambda gpu: gpu.health.ecc_volatile_uncorrected,
        "health.ecc_volatile_uncorrected",
        "memory errors",
    )
