"""The InfoROM of a GPU is corrupt.

## Why it matters
The InfoROM holds the card's configuration: power limits, ECC mode, counts of errors. When its
checksum is wrong the driver falls back on defaults and loses the history of memory errors.

## What to do
Reboot the node; when it stays, have the card's firmware restored or the card replaced by its
vendor.

## References
- nvml.h of CUDA 13.5: nvmlDeviceValidateInforom
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Missing,
    RunNeeds,
    Scope,
    check,
    fail,
)

from ._util import judged, named, skip_unreported

CONDITION = Condition("inforom-corrupt", id="DSD607", scope=Scope.NODE, since="0.1")


@check(CONDITION)
def inforom_is_valid(gpus: Gpus, run: RunNeeds, env: Environment | Missing) -> Iterator[Finding]:
    """Judges the checksum that the driver computed."""
    found = judged(gpus, run, env)
    for gpu in found:
        if gpu.health.inforom_valid is False:
            yield fail(
                f"the InfoROM of {named(gpu)} has a wrong checksum, but it should be valid",
                effect="the GPU runs on default limits and without a history of memory errors",
                hint="reboot, and have the card restored or replaced when it stays",
                gpu=gpu.index,
                uuid=gpu.uuid,
                inforom_valid=False,
            )
    yield from skip_unreported(
        found, lambda gpu: gpu.health.inforom_valid, "health.inforom_valid", "its InfoROM's state"
    )
