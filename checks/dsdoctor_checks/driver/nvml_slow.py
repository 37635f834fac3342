"""The driver loads slowly because persistence mode is off.

## Why it matters
Without persistence, the driver releases a GPU when its last user exits and initializes it again for
the next one. That takes seconds per GPU. Tools, health checks and the first step of every job wait
for it, and a gate before a job may exceed its time limit.

## What to do
Start `nvidia-persistenced`, or run `nvidia-smi -pm 1`, which does not survive a reboot.

## References
- https://docs.nvidia.com/deploy/driver-persistence/
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Gpus,
    Nvml,
    Observation,
    Scope,
    check,
    warn,
)

CONDITION = Condition(
    "nvml-slow",
    id="DSD112",
    scope=Scope.NODE,
    since="0.1",
    names=(Observation.NVML_SLOW,),
)


@check(CONDITION)
def driver_answers_at_once(nvml: Nvml, gpus: Gpus) -> Iterator[Finding]:
    """Warns only if persistence is off: a busy machine is slow too."""
    if nvml.slow_seconds is None:
        return
    cold = [gpu.index for gpu in gpus.gpus if gpu.persistence_mode is False]
    if not cold:
        return
    yield warn(
        f"NVML took {nvml.slow_seconds:g} s for {len(gpus.gpus)} GPUs, and persistence mode is off "
        f"on {len(cold)} of them, but a driver that stays loaded answers within 2 s",
        effect="every tool and job waits that long for the driver, and gates may time out",
        hint="start `nvidia-persistenced`, or run `nvidia-smi -pm 1` as root",
        seconds=nvml.slow_seconds,
        gpus=len(gpus.gpus),
        cold=cold,
    )
