"""The fabric manager is of another version than the driver.

## Why it matters
The fabric manager talks to the driver through an interface without a stable form, so it refuses to
start beside a driver of any other version, and then no CUDA program on a board with NVSwitch starts
(error 802). A package manager that upgrades one of the two and not the other is the usual cause; a
manager that still runs from before the upgrade hides it until the next restart.

## What to do
Install `nvidia-fabricmanager` in the very version of the driver, hold both packages at it, and
restart the service.

## References
- https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/ (installing, matching versions)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    FabricManager,
    Finding,
    NvidiaKernel,
    Scope,
    check,
    fail,
    skip,
    warn,
)

CONDITION = Condition(
    "fabric-manager-version-mismatch",
    id="DSD113",
    scope=Scope.NODE,
    since="0.1",
    leads_to=("fabric-manager-not-running",),
)


@check(CONDITION)
def manager_is_of_the_driver(manager: FabricManager, kernel: NvidiaKernel) -> Iterator[Finding]:
    """The manager that would start next time against the driver that is loaded."""
    driver, version = kernel.module_version, manager.version
    if not manager.switches:
        return
    if driver is None or version is None:
        yield skip("the version of the fabric manager or of the driver could not be read")
        return
    if driver == version:
        return
    goes_on = manager.running is not False
    yield (warn if goes_on else fail)(
        f"the fabric manager is {version}, but the driver is {driver}",
        effect="it refuses to start again: after the next restart CUDA ends with error 802"
        if goes_on
        else "it refuses to start, and CUDA ends with error 802",
        hint=f"install `nvidia-fabricmanager` with version {driver}, and restart it",
        version=version,
        driver=driver,
    )
