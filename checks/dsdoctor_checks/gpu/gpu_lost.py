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
    skip,
)

from ._util import GPU_IS_LOST, NO_PERMISSION, RESET_REQUIRED, judged, named

CONDITION = Condition("gpu-lost", id="DSD601", scope=Scope.NODE, since="0.1")


@check(CONDITION)
def gpus_answer(gpus: Gpus, run: RunNeeds, env: Environment | Missing) -> Iterator[Finding]:
    """Judges errors that concern the whole GPU."""
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
