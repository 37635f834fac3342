"""The driver starts slowly, because nothing keeps it loaded.

## Why it matters
Without persistence the driver lets go of a GPU when its last user leaves, and starts it anew for
the next one. That takes seconds for each GPU: tools, health checks and the first step of every job
wait for it, and a gate before a job may run out of its budget.

## What to do
Start `nvidia-persistenced`, or set persistence mode with `nvidia-smi -pm 1` (which does not outlive
a restart of the machine).

## References
- https://docs.nvidia.com/deploy/driver-persistence/
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, Finding, Gpus, Nvml, Scope, check, warn

CONDITION = Condition("nvml-slow", id="DSD112", scope=Scope.NODE, since="0.1")


@check(CONDITION)
def driver_answers_at_once(nvml: Nvml, gpus: Gpus) -> Iterator[Finding]:
    """Slow is a fault of the set-up only where persistence is off; a busy machine is slow too."""
    if nvml.slow_seconds is None:
        return
    cold = [gpu.index for gpu in gpus.gpus if gpu.persistence_mode is False]
    if not cold:
        return
    yield warn(
        f"NVML took {nvml.slow_seconds:g} s for {len(gpus.gpus)} GPUs, and persistence mode is off "
        f"on {len(cold)} of them, but a driver that stays loaded answers within a second or two",
        effect="every tool and every job waits that long for the driver, and gates may time out",
        hint="start `nvidia-persistenced`, or set persistence mode with `nvidia-smi -pm 1`",
        seconds=nvml.slow_seconds,
        gpus=len(gpus.gpus),
        cold=cold,
    )
