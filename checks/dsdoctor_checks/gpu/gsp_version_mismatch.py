"""A GPU's firmware and the driver have different versions.

## Why it matters
Since Turing, part of the driver runs as firmware on the GPU itself (GSP) and is loaded with the
driver. A different version means an incomplete update. Calls to the GPU then time out (Xid 119, 120).

## What to do
Reboot the node. If the mismatch remains, reinstall the driver with its firmware package.

## References
- nvml.h of CUDA 13.5: nvmlDeviceGetGspFirmwareVersion
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Missing,
    Nvml,
    RunNeeds,
    Scope,
    check,
    warn,
)

from ._util import judged, named, skip_unreported

CONDITION = Condition("gsp-version-mismatch", id="DSD619", scope=Scope.NODE, since="0.1")


@check(CONDITION)
def firmware_is_the_drivers(
    gpus: Gpus, nvml: Nvml, run: RunNeeds, env: Environment | Missing
) -> Iterator[Finding]:
    """Compares the version of the loaded GSP firmware with the driver's."""
    found = judged(gpus, run, env)
    for gpu in found:
        if not gpu.gsp_enabled or gpu.gsp_version is None or nvml.driver_version is None:
            continue
        if gpu.gsp_version != nvml.driver_version:
            yield warn(
                f"the GSP firmware of {named(gpu)} is {gpu.gsp_version}, but the driver is "
                f"{nvml.driver_version}",
                effect="calls to the GPU may time out (Xid 119)",
                hint="reboot; if the mismatch remains, reinstall the driver",
                gpu=gpu.index,
                uuid=gpu.uuid,
                gsp=gpu.gsp_version,
                driver=nvml.driver_version,
            )
    yield from skip_unreported(
        found, lambda gpu: gpu.gsp_enabled, "gsp_enabled", "the GSP firmware"
    )
