"""GPU memory has uncorrectable errors.

## Why it matters
An uncorrectable error kills the program that touches the bad memory. Errors since the driver was
loaded mean that it may happen again before the row is replaced; errors of the SRAM do not heal at
all.

## What to do
Reset the GPU or reboot, so that the bad row is replaced; when the count of SRAM errors is over
the threshold, have the card replaced.

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

from ._util import judged, named, skip_unreported

CONDITION = Condition("ecc-uncorrectable", id="DSD603", scope=Scope.NODE, since="0.1")


class EccLimits(Limits, frozen=True, kw_only=True):
    """Uncorrectable errors that are tolerated.

    Attributes:
        max_volatile_errors: since the driver was loaded.
        max_sram_errors: of the SRAM, in the life of the card; above it NVIDIA replaces cards.
    """

    max_volatile_errors: float = 0
    max_sram_errors: float = 4


@check(CONDITION)
def memory_is_sound(
    gpus: Gpus, run: RunNeeds, env: Environment | Missing, limits: EccLimits
) -> Iterator[Finding]:
    """Judges counts of uncorrectable errors; old ones of DRAM are healed by row remapping."""
    found = judged(gpus, run, env)
    for gpu in found:
        health = gpu.health
        volatile, sram = health.ecc_volatile_uncorrected, health.sram_aggregate_uncorrected
        what = ""
        if health.sram_threshold_exceeded or (sram or 0) > limits.max_sram_errors:
            what = (
                f"{named(gpu)} has counted {sram or 0} uncorrectable SRAM errors in its life, but "
                f"NVIDIA tolerates up to {limits.max_sram_errors:g}"
            )
            hint = "have the card replaced"
        elif (volatile or 0) > limits.max_volatile_errors:
            what = (
                f"{named(gpu)} has counted {volatile} uncorrectable memory errors since the driver "
                f"was loaded, but {limits.max_volatile_errors:g} are expected"
            )
            hint = f"run `nvidia-smi --gpu-reset -i {gpu.index}` as root, or reboot"
        if what:
            yield fail(
                what,
                effect="a program that touches the bad memory ends in a CUDA error (Xid 48 or 95)",
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
