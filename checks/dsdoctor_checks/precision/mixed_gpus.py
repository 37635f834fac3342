"""The GPUs of this run differ in model or memory.

## Why it matters
ZeRO splits everything into equal parts: the GPU with the least memory limits the batch size, and the
slowest one sets the pace. If capabilities differ, ops are compiled for each of them, and the run can
only use number formats that all GPUs support.

## What to do
Choose identical GPUs with `--include` or `CUDA_VISIBLE_DEVICES`. Set `CUDA_DEVICE_ORDER=PCI_BUS_ID` as
well, so that the indices are those of `nvidia-smi`.

## References
- CUDA programming guide, environment variables
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Condition,
    DeepSpeedInstall,
    Environment,
    Finding,
    Gpus,
    Limits,
    Missing,
    RunNeeds,
    Scope,
    Why,
    check,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import chosen, dotted, listed


class MixedLimits(Limits, frozen=True, kw_only=True):
    """What still counts as the same GPU.

    Attributes:
        memory_percent: difference in memory size, in percent.
    """

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
    gpus: Gpus,
    run: RunNeeds,
    env: Environment | Missing,
    limits: MixedLimits,
    deepspeed: DeepSpeedInstall | Missing,
) -> Iterator[Finding]:
    """Compares model, capability and memory of the GPUs that the run would use."""
    used = chosen(gpus, run, env)
    if len(used) < 2:  # noqa: PLR2004
        yield skip("fewer than two GPUs in this run", count=len(used))
        return
    if not _is_run_shown(run, deepspeed):
        yield skip("the text does not show a run over several GPUs", count=len(used))
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
    which = "of this run" if _is_asked(run) else "that a launch uses by default"
    if len(names) > 1 or len(capabilities) > 1:
        what = f"are {listed(names)}" if len(names) > 1 else "differ in capability"
        text = f"the {len(used)} GPUs {which} {what}, but should be identical"
    elif uneven:
        text = (
            f"the {len(used)} GPUs {which} have {smallest} to {largest} MiB,"
            " but should all have the same"
        )
    else:
        yield ok(**evidence)
        return
    yield warn(
        text,
        effect="the smallest memory limits the batch size, and the slowest GPU sets the pace",
        hint="choose identical GPUs with `CUDA_VISIBLE_DEVICES` and `CUDA_DEVICE_ORDER=PCI_BUS_ID`",
        **evidence,
    )


def _is_run_shown(run: RunNeeds, deepspeed: DeepSpeedInstall | Missing) -> bool:
    """Whether there is a job that may use all GPUs.

    A workstation has a second card for its display, and what people paste about a program for one GPU
    lists both. On the machine itself, DeepSpeed is always looked for.
    """
    asked = _is_asked(run)
    return asked or not (isinstance(deepspeed, Missing) and deepspeed.why is Why.NOT_ASKED)


def _is_asked(run: RunNeeds) -> bool:
    return bool(run.command or run.gpus or run.visible_devices or run.device_count)
