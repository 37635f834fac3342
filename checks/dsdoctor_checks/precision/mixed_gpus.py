"""The GPUs of this run are not alike.

## Why it matters
ZeRO cuts everything into equal parts: the GPU with the least memory sets the batch, and the
slowest one the pace. With unlike capabilities, ops are compiled for each of them and a number
format that one lacks is lost for all.

## What to do
Choose GPUs that are alike with `CUDA_VISIBLE_DEVICES` (and `CUDA_DEVICE_ORDER=PCI_BUS_ID`, so that
its numbers are those of `nvidia-smi`) or `--include`.

## References
- CUDA programming guide, environment variables
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
    skip,
    warn,
)
from dsdoctor_checks._util import chosen, dotted, listed


class MixedGpus(Limits, frozen=True, kw_only=True):
    """Attributes: memory_percent: how far memories may lie apart and still be alike."""

    memory_percent: float = 5.0


CONDITION = Condition(
    "mixed-gpus",
    id="DSD503",
    scope=Scope.JOB,
    since="0.1",
    leads_to=("gpu-oom",),
)


@check(CONDITION)
def gpus_are_alike(
    gpus: Gpus, run: RunNeeds, env: Environment | Missing, limits: MixedGpus
) -> Iterator[Finding]:
    """Model, capability and memory of the GPUs that the run would use."""
    used = chosen(gpus, run, env)
    if len(used) < 2:  # noqa: PLR2004
        yield skip("fewer than two GPUs in this run", count=len(used))
        return
    names = sorted({gpu.name for gpu in used if gpu.name})
    capabilities = sorted({gpu.cc for gpu in used if gpu.cc})
    sizes = [gpu.memory_total_bytes >> 20 for gpu in used if gpu.memory_total_bytes]
    smallest, largest = min(sizes, default=0), max(sizes, default=0)
    uneven = (largest - smallest) * 100 > largest * limits.memory_percent
    evidence: dict[str, Any] = {
        "names": names,
        "capabilities": [dotted(cc) for cc in capabilities],
        "smallest_mib": smallest,
        "largest_mib": largest,
        "memory_percent": limits.memory_percent,
        "count": len(used),
    }
    if len(names) > 1 or len(capabilities) > 1:
        what = f"are {listed(names)}" if len(names) > 1 else "differ in capability"
        text = f"the {len(used)} GPUs of this run {what}, but should be alike"
    elif uneven:
        text = (
            f"the {len(used)} GPUs of this run have {smallest} to {largest} MiB,"
            " but should have the same"
        )
    else:
        yield ok(**evidence)
        return
    yield warn(
        text,
        effect="the smallest memory sets the batch and the slowest GPU the pace for all",
        hint="choose GPUs that are alike with `CUDA_VISIBLE_DEVICES` and"
        " `CUDA_DEVICE_ORDER=PCI_BUS_ID`",
        **evidence,
    )
