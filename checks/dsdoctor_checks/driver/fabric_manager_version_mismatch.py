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
    Gpus,
    Level,
    Missing,
    NotStated,
    NvidiaKernel,
    Nvml,
    Scope,
    Signature,
    check,
    fail,
    skip,
    warn,
)

from ._fabric import has_switches

CONDITION = Condition(
    "fabric-manager-version-mismatch",
    id="DSD113",
    scope=Scope.NODE,
    since="0.1",
    leads_to=("fabric-manager-not-running",),
)


def _driver(kernel: NvidiaKernel | Missing, nvml: Nvml | Missing) -> str | None:
    """The loaded driver; a paste often has NVML's word for it only."""
    try:
        if isinstance(kernel, NvidiaKernel) and kernel.module_version:
            return kernel.module_version
    except NotStated:
        pass
    return nvml.driver_version if isinstance(nvml, Nvml) else None


@check(CONDITION)
def manager_is_of_the_driver(
    manager: FabricManager,
    kernel: NvidiaKernel | Missing,
    nvml: Nvml | Missing,
    gpus: Gpus | Missing,
) -> Iterator[Finding]:
    """Compares the installed fabric manager with the loaded driver."""
    if not has_switches(manager, gpus):
        return
    driver, version = _driver(kernel, nvml), manager.version
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


HINT = "install the `nvidia-fabricmanager` of the driver's version and restart the service"

SIGNATURES = (
    Signature(
        pattern=r"(?i)driver interface version (?P<own>\d[\d.]{2,14}\d) don't match with driver version (?P<driver>\d[\d.]{2,14}\d)",
        source="NVIDIA Fabric Manager 450-590 nv-fabricmanager",
        message="the fabric manager is {own}, but the driver is {driver}",
        hint="install `nvidia-fabricmanager` version {driver} and restart the service",
        examples=(
            "nv-fabricmanager[2210]: fabric manager NVIDIA GPU driver interface version 550.54.15 don't match with driver version 550.90.07. Please update with matching NVIDIA driver package.",
        ),
        not_examples=("driver interface version x don't match with driver version y",),
        level=Level.CERTAIN,
        masks=("fabric-manager-not-running", "no-gpu-visible", "cuda-init-driver-state"),
    ),
)
