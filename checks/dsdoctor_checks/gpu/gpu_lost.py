"""A GPU has fallen off the bus or cannot be reached.

## Why it matters
The driver lists the GPU, but no call reaches it. CUDA fails on this GPU, and often on every other GPU
of the machine, until it is back. In a container, only the container may have lost access. A GPU that
the driver could not initialize is not listed at all; the kernel log says `RmInitAdapter failed`.

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
    Level,
    Missing,
    NotStated,
    NvidiaKernel,
    OsInfo,
    PciGpu,
    RunNeeds,
    Scope,
    Signature,
    check,
    fail,
    skip,
    warn,
)
from dsdoctor_checks._util import amount, variable

from ._util import GPU_IS_LOST, NO_PERMISSION, RESET_REQUIRED, judged, named

CONDITION = Condition(
    "gpu-lost",
    id="DSD601",
    scope=Scope.NODE,
    since="0.1",
    narrower=("kernel-module-unsuitable",),
)


HINT = (
    "read the `NVRM` lines before it in `dmesg`, then power the node off and on; if it fails again,"
    " enable Above 4G Decoding and Resizable BAR in the machine's firmware setup, check the power"
    " cables, and reseat the card"
)


@check(CONDITION)
def gpus_answer(
    gpus: Gpus,
    run: RunNeeds,
    env: Environment | Missing,
    kernel: NvidiaKernel | Missing,
    fell: FallenGpus | Missing,
    os: OsInfo | Missing,
) -> Iterator[Finding]:
    """Judges errors that concern the whole GPU, and a GPU that the driver does not list."""
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
    yield from _not_started(gpus, kernel, fell, _sees_all(os, env))
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


def _sees_all(os: OsInfo | Missing, env: Environment | Missing) -> bool:
    """Whether a GPU that NVML does not list is not one of another job or container."""
    return isinstance(os, OsInfo) and os.container is None and not variable(env, "SLURM_JOB_ID")


def _not_started(
    gpus: Gpus, kernel: NvidiaKernel | Missing, fell: FallenGpus | Missing, sees_all: bool
) -> Iterator[Finding]:
    """GPUs that the driver could not initialize and still does not list; a reset may have helped."""
    if isinstance(kernel, Missing) or isinstance(fell, Missing) or not sees_all:
        return
    listed = {gpu.pci_bdf for gpu in gpus.gpus}
    if None in listed:  # a GPU that does not answer has no address here, and is reported already
        return
    failed = [
        gpu.bdf
        for gpu in kernel.pci
        if gpu.driver == "nvidia" and gpu.bdf not in listed and gpu.bdf in fell.not_started
    ]
    if failed:
        others = f"; it lists {amount(len(listed), 'other GPU')}" if listed else ""
        yield fail(
            f"the driver could not initialize the GPU at {failed[0]} (`RmInitAdapter failed`){others}",
            effect="CUDA does not see this GPU",
            hint=HINT,
            bdf=failed[0],
            not_started=failed,
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


SIGNATURES = (
    Signature(
        pattern="RmInitAdapter failed",
        source="NVIDIA driver 390-610 kernel module (NVRM)",
        examples=(
            "RmInitAdapter failed",
            "NVRM: GPU 0000:81:00.0: RmInitAdapter failed! (0x25:0x40:1470)",
        ),
        level=Level.STRONG,
        masks=("no-gpu-visible", "docker-gpu-runtime-missing", "cuda-init-driver-state"),
        message="The NVIDIA driver could not initialize a GPU",
    ),
)
