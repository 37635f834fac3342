"""MIG is enabled on a GPU, but no MIG device exists on it.

## Why it matters
In MIG mode, CUDA sees only MIG devices, never the GPU as a whole. With MIG enabled and no GPU
instance created, `nvidia-smi` lists the GPU and CUDA finds none: `No CUDA GPUs are available`.

## What to do
Create MIG devices (`nvidia-smi mig -i N -cgi PROFILE -C`; `nvidia-smi mig -lgip` lists the profiles),
or disable MIG (`nvidia-smi -i N -mig 0`). Both need root and an idle GPU. MIG devices do not survive
a reboot.

## References
- https://docs.nvidia.com/datacenter/tesla/mig-user-guide/ (creating GPU instances)
- nvml.h of CUDA 13.5: nvmlDeviceGetMigMode, nvmlDeviceGetMigDeviceHandleByIndex
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
    ok,
    warn,
)
from dsdoctor_checks._util import listed

from ._util import judged, named, selector, without_instance

CONDITION = Condition(
    "mig-without-instance",
    id="DSD622",
    scope=Scope.NODE,
    since="0.2",
    leads_to=("no-gpu-visible",),
)


@check(CONDITION)
def mig_gpus_have_devices(
    gpus: Gpus, run: RunNeeds, env: Environment | Missing
) -> Iterator[Finding]:
    """A failure if the run names such a GPU or has no other; else the run can do without it."""
    found = judged(gpus, run, env)
    empty = [gpu for gpu in found if without_instance(gpu)]
    if not empty:
        yield ok(gpus=[gpu.index for gpu in found if gpu.mig_mode])
        return
    say = fail if run.gpus or all(map(without_instance, found)) else warn
    indices = ",".join(map(selector, empty))
    yield say(
        f"MIG is enabled on {listed(named(gpu) for gpu in empty)}, but no MIG device exists there",
        effect="CUDA does not see "
        + ("this GPU" if len(empty) == 1 else "these GPUs")
        + " (`No CUDA GPUs are available`)",
        hint=f"create MIG devices with `nvidia-smi mig -i {indices} -cgi PROFILE -C`, or run "
        f"`nvidia-smi -i {indices} -mig 0` as root",
        gpus=[gpu.index for gpu in empty],
        mig_devices=0,
    )
