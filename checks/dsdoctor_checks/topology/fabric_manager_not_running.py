"""The NVLink fabric of this board is not set up.

## Why it matters
On boards with NVSwitches (HGX, DGX) CUDA does not initialise until the fabric manager has set up
the switches: error 802, `system not yet initialized`. nvidia-smi lists all GPUs nevertheless.

## What to do
Start the service: `systemctl start nvidia-fabricmanager`; its version has to be exactly that of the
driver, and on B200 boards it needs `nvlsm` too.

## References
- nvml.h of CUDA 13.5: nvmlGpuFabricState_t
- CUDA driver_types.h: cudaErrorSystemNotReady
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    FabricHealth,
    FabricState,
    Finding,
    Gpu,
    Gpus,
    Missing,
    Nvml,
    RunNeeds,
    Scope,
    TorchLive,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import chosen, cuda_works

CONDITION = Condition("fabric-manager-not-running", id="DSD703", scope=Scope.NODE, since="0.1")


def trouble(gpu: Gpu) -> str | None:
    """What is wrong with the registration of a GPU, None when nothing is or it has no fabric."""
    fabric = gpu.fabric
    if fabric.state in (FabricState.NOT_STARTED, FabricState.IN_PROGRESS):
        return f"is {FabricState(fabric.state).name}"
    if fabric.state == FabricState.COMPLETED and fabric.status:
        return f"ended with NVML error {fabric.status}"
    if fabric.state == FabricState.COMPLETED and fabric.health_summary == FabricHealth.UNHEALTHY:
        return "is COMPLETED but UNHEALTHY"
    return None


@check(CONDITION)
def fabric_is_up(
    gpus: Gpus,
    nvml: Nvml,
    run: RunNeeds,
    env: Environment | Missing,
    live: TorchLive | Missing,
) -> Iterator[Finding]:
    """Judges each GPU's registration; a CUDA that starts shows that it is not needed here."""
    found = [gpu for gpu in chosen(gpus, run, env) if gpu.fabric.state]
    if not found:
        yield skip("no GPU of this run belongs to an NVLink fabric that the driver tells of")
    started = cuda_works(live)
    for gpu in found:
        wrong = trouble(gpu)
        if wrong is None:
            yield ok(gpu=gpu.index, state=gpu.fabric.state)
            continue
        yield (warn if started else fail)(
            f"the registration of GPU {gpu.index} ({gpu.name}) with the NVLink fabric {wrong}, but "
            "it should be COMPLETED and healthy",
            effect="CUDA ends in error 802, `system not yet initialized`",
            hint="run `systemctl start nvidia-fabricmanager` as root, in the version "
            f"{nvml.driver_version or 'of the driver'}",
            gpu=gpu.index,
            uuid=gpu.uuid,
            state=gpu.fabric.state,
            status=gpu.fabric.status,
            health_summary=gpu.fabric.health_summary,
            driver=nvml.driver_version,
            cuda_started=started,
        )
