"""The fabric manager and the driver have different versions.

## Why it matters
The fabric manager talks to the driver through an unstable interface, so it refuses to start with
any other driver version. No CUDA program then starts on a board with NVSwitch (error 802). The
usual cause is a package manager that upgraded only one of the two. A manager that kept running
through the upgrade hides the problem until the next restart.

## What to do
Install `nvidia-fabricmanager` in the driver's exact version, pin both packages, and restart the
service.

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
    """Compares the installed fabric manager with the loaded driver."""
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
        effect="it will not start again: after the next restart, CUDA fails with error 802"
        if goes_on
        else "it refuses to start, and CUDA fails with error 802",
        hint=f"install `nvidia-fabricmanager` version {driver} and restart the service",
        version=version,
        driver=driver,
    )
