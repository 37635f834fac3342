"""A GPU repair is pending until the next reset.

## Why it matters
The driver found a faulty memory channel or processing cluster that it can repair at the next reset.
Until then, errors may recur.

## What to do
Reset the GPU or reboot the node at the next opportunity.

## References
- nvml.h of CUDA 13.5: nvmlDeviceGetRepairStatus
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
    warn,
)

from ._util import judged, named, selector, skip_unreported

CONDITION = Condition("channel-repair-pending", id="DSD617", scope=Scope.NODE, since="0.1")


@check(CONDITION)
def no_repair_is_pending(
    gpus: Gpus, run: RunNeeds, env: Environment | Missing
) -> Iterator[Finding]:
    """Warns if a channel or cluster repair is pending."""
    found = judged(gpus, run, env)
    for gpu in found:
        if gpu.health.channel_repair_pending or gpu.health.tpc_repair_pending:
            yield warn(
                f"{named(gpu)} has a repair pending until the next reset, but none is expected",
                effect="errors in the faulty part may recur until then",
                hint=f"run `nvidia-smi --gpu-reset -i {selector(gpu)}` as root, or reboot",
                gpu=gpu.index,
                uuid=gpu.uuid,
                channel=gpu.health.channel_repair_pending,
                tpc=gpu.health.tpc_repair_pending,
            )
    yield from skip_unreported(
        found,
        lambda gpu: gpu.health.channel_repair_pending,
        "health.channel_repair_pending",
        "pending repairs",
    )
