"""A GPU has fallen off the bus or cannot be reached.

## Why it matters
The driver lists the GPU, but no call reaches it. CUDA fails on this GPU, and often on every other GPU
of the machine, until it is back. In a container, only the container may have lost access.

## What to do
Look for Xid 79 in the kernel log, then reboot the node. If the fault recurs, reseat the card and
check its power cables. In a container, start a new one.

## References
- nvml.h of CUDA 13.5: nvmlReturn_t 15
- https://docs.nvidia.com/deploy/xid-errors/
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    FallenGpus,
    Finding,
    Gpus,
    Missing,
    NotStated,
    NvidiaKernel,
    PciGpu,
    RunNeeds,
    Scope,
    check,
    fail,
    skip,
    warn,
)

from ._util import GPU_IS_LOST, NO_PERMISSION, RESET_REQUIRED, judged, named

CONDITION = Condition("gpu-lost", id="DSD601", scope=Scope.NODE, since="0.1")


@check(CONDITION)
def gpus_answer(
    gpus: Gpus,
    run: RunNeeds,
    env: Environment | Missing,
    kernel: NvidiaKernel | Missing,
    fell: FallenGpus | Missing,
) -> Iterator[Finding]:
    """Judges errors that concern the whole GPU, and a GPU that the driver left on the bus."""
    for gpu in judged(gpus, run, env):
        error = gpu.error
        if error is None or error.code == RESET_REQUIRED:
            continue
        if error.code == NO_PERMISSION:
            yield skip(f"this user may not read {named(gpu)} ({error.message})", gpu=gpu.index)
            continue
        state = "is lost" if error.code == GPU_IS_LOST else "does not answer"
        yield fail(
            f"{named(gpu)} {state}: `{error.call}` returned {error.name} ({error.code}), but it "
            "succeeds on a healthy GPU",
            effect="CUDA fails on this GPU, and may fail on all GPUs of the machine",
            hint="look for `Xid` in `dmesg`, then reboot the node; in a container, start a new one",
            gpu=gpu.index,
            uuid=gpu.uuid,
            code=error.code,
            name=error.name,
            call=error.call,
            error=error.message,
        )
    left, taken = _left_on_bus(kernel)
    fallen = [gpu.bdf for gpu in left if isinstance(fell, FallenGpus) and gpu.bdf in fell.bdfs]
    if fallen:
        yield fail(
            f"the GPU at {fallen[0]} did not answer when the driver took it (`fallen off the bus`), but it"
            f" took {taken} of the same type",
            effect="the machine has fewer GPUs than it should have",
            hint="power the node off and on; if the GPU does not come back, reseat it and check its power"
            " cables",
            bdf=fallen[0],
            left=[gpu.bdf for gpu in left],
            taken=taken,
        )
    elif left:
        yield warn(
            f"the GPU at {left[0].bdf} is on the PCI bus, but the driver does not use it, although "
            f"it uses {taken} of the same type",
            effect="the machine has fewer GPUs than it should have",
            hint="look for `NVRM` in `dmesg`, then reboot the node",
            bdf=left[0].bdf,
            left=[gpu.bdf for gpu in left],
            taken=taken,
        )


def _left_on_bus(kernel: NvidiaKernel | Missing) -> tuple[list[PciGpu], int]:
    """GPUs that no driver uses although `nvidia` uses others of their type, and how many others.

    A card of another type may be one that the driver no longer supports.
    """
    if isinstance(kernel, Missing):
        return [], 0
    try:
        taken = Counter(gpu.device_id for gpu in kernel.pci if gpu.driver == "nvidia")
        left = [gpu for gpu in kernel.pci if not gpu.driver and taken[gpu.device_id]]
    except NotStated:  # a paste rarely says which driver each GPU uses
        return [], 0
    return left, taken[left[0].device_id] if left else 0
