"""The driver unloads the GPUs of a training node whenever nobody uses them.

## Why it matters
Without persistence mode the driver sets each GPU up again for every program that comes after a
pause: seconds for each GPU of a node, and the counters of ECC errors begin anew, so that faults are
not seen. Jobs run all the same.

## What to do
Run `systemctl enable --now nvidia-persistenced` (some packages start it with
`--no-persistence-mode`; take that option out), or `nvidia-smi -pm 1` as root after each boot.

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
    RunNeeds,
    Scope,
    check,
    ok,
    warn,
)
from dsdoctor_checks._util import listed

from ._util import judged, skip_unreported

CONDITION = Condition("persistence-mode-off", id="DSD621", scope=Scope.NODE, since="0.1")

#: Brands of data-centre cards; a workstation whose screen keeps the driver loaded is well without.
DATA_CENTRE = ("Tesla", "NVIDIA")


class PersistenceLimits(Limits, frozen=True, kw_only=True):
    """From how many GPUs on the pause is felt.

    Attributes:
        min_gpus: data-centre GPUs of a node; fewer are set up in no time that matters.
    """

    min_gpus: float = 4


@check(CONDITION)
def driver_stays_loaded(
    gpus: Gpus, run: RunNeeds, env: Environment | Missing, limits: PersistenceLimits
) -> Iterator[Finding]:
    """Judges nodes with several data-centre GPUs; one finding for all of them."""
    found = judged(gpus, run, env)
    off = [
        gpu.index
        for gpu in found
        if gpu.persistence_mode is False and gpu.brand in DATA_CENTRE and not gpu.display_active
    ]
    if len(off) >= limits.min_gpus:
        yield warn(
            f"persistence mode is off on the GPUs {listed(off)}, but a training node needs it on",
            effect="each start waits seconds for every GPU, and ECC counters begin anew each time",
            hint="run `systemctl enable --now nvidia-persistenced`, or `nvidia-smi -pm 1` as root",
            gpus=off,
            min_gpus=limits.min_gpus,
        )
    else:
        yield ok(off=off)
    yield from skip_unreported(
        found, lambda gpu: gpu.persistence_mode, "persistence_mode", "its persistence mode"
    )
