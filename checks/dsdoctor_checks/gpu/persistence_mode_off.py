"""Persistence mode is off on a training node.

## Why it matters
Without persistence mode, the driver unloads a GPU when it becomes idle and initializes it again for
the next program. That costs seconds per GPU. It also resets the volatile ECC counters, which hides
faults. Jobs still run.

## What to do
Run `systemctl enable --now nvidia-persistenced`, or `nvidia-smi -pm 1` as root after each boot. Some
packages start the service with `--no-persistence-mode`; remove that option.

## References
- https://docs.nvidia.com/deploy/driver-persistence/
- nvml.h of CUDA 13.5: nvmlDeviceGetPersistenceMode (Linux)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Limits,
    Missing,
    OsInfo,
    RunNeeds,
    Scope,
    check,
    ok,
    warn,
)
from dsdoctor_checks._util import listed
from dsdoctor_checks._where import on_host

from ._util import judged, skip_unreported

CONDITION = Condition("persistence-mode-off", id="DSD621", scope=Scope.NODE, since="0.1")

#: Brands of data-center cards; on a workstation, the display keeps the driver loaded.
DATA_CENTRE = ("Tesla", "NVIDIA")


class PersistenceLimits(Limits, frozen=True, kw_only=True):
    """From how many GPUs on the delay matters.

    Attributes:
        min_gpus: data-center GPUs in a node; fewer initialize quickly enough.
    """

    min_gpus: float = 4


@check(CONDITION)
def driver_stays_loaded(
    gpus: Gpus,
    run: RunNeeds,
    env: Environment | Missing,
    os: OsInfo | Missing,
    limits: PersistenceLimits,
) -> Iterator[Finding]:
    """Judges nodes with several data-center GPUs; one finding for all of them."""
    found = judged(gpus, run, env)
    off = [
        gpu.index
        for gpu in found
        if gpu.persistence_mode is False and gpu.brand in DATA_CENTRE and not gpu.display_active
    ]
    if len(off) >= limits.min_gpus:
        yield warn(
            f"persistence mode is off on GPUs {listed(off)}, but it should be on in a training node",
            effect="each start waits seconds for every GPU, and ECC counters are reset each time",
            hint="run `systemctl enable --now nvidia-persistenced`, or `nvidia-smi -pm 1` as root"
            + on_host(os),
            gpus=off,
            min_gpus=limits.min_gpus,
        )
    else:
        yield ok(off=off)
    yield from skip_unreported(
        found, lambda gpu: gpu.persistence_mode, "persistence_mode", "the persistence mode"
    )
