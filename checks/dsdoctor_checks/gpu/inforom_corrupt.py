"""A GPU's InfoROM is corrupt.

## Why it matters
The InfoROM stores the card's configuration: power limits, ECC mode, error counts. If its checksum is
wrong, the driver uses defaults and loses the history of memory errors.

## What to do
Reboot the node. If the checksum is still wrong, ask the card's vendor for new firmware or a
replacement.

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
    """Judges the checksum, as the driver reports it."""
    found = judged(gpus, run, env)
    for gpu in found:
        if gpu.health.inforom_valid is False:
            yield fail(
                f"the InfoROM of {named(gpu)} fails its checksum, but it should be valid",
                effect="the GPU runs with default limits and without its history of memory errors",
                hint="reboot; if the checksum still fails, have the vendor restore or replace the card",
                gpu=gpu.index,
                uuid=gpu.uuid,
                inforom_valid=False,
            )
    yield from skip_unreported(
        found,
        lambda gpu: gpu.health.inforom_valid,
        "health.inforom_valid",
        "the state of the InfoROM",
    )
