"""The run needs more host memory than it can get.

## Why it matters
Offload keeps 16 bytes or more per parameter in host memory, for all ranks of a node together. torch
rounds each pinned block up to a power of two, which can double its size. When the memory of the
machine or the limit of the cgroup is exceeded, the kernel kills a rank (exit code -9, no message).
Pinned memory cannot be swapped out, so swap does not help.

## What to do
Request more memory (`--mem`, `resources.limits.memory`), use more nodes, offload less, or disable
pinning (`"pin_memory": false`, or with torch 2.13 and later
`PYTORCH_ALLOC_CONF=pinned_max_round_threshold_mb:64`).

## References
- DeepSpeed 0.19.8 runtime/zero/stage_1_and_2.py, stage3.py
- https://github.com/pytorch/pytorch/issues/95823 (rounding of pinned blocks)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Condition,
    Finding,
    MemoryDemand,
    MemoryDetail,
    Missing,
    OsInfo,
    Resources,
    Scope,
    check,
    fail,
    ok,
    warn,
)
from dsdoctor_checks._util import gib

from ._util import itemized, otherwise

CONDITION = Condition(
    "plan-exceeds-host-memory",
    id="DSD1402",
    scope=Scope.JOB,
    since="0.1",
    leads_to=("host-oom-killed",),
)


#: Items of every run on GPUs; anything else of the host is there because something is offloaded.
_WITHOUT_OFFLOAD = frozenset({"processes", "data loader workers", "weights being loaded"})


def _less(demand: MemoryDemand) -> str:
    """What makes the demand smaller: what takes the most of it decides."""
    if not demand.on_gpu:
        return "choose a smaller model"
    if demand.host_items.keys() - _WITHOUT_OFFLOAD:
        return "offload less"
    # every rank reads the whole checkpoint (transformers 5.23 modeling_utils.py, `from_pretrained`)
    return (
        "load the weights in 16 bits (`torch_dtype=torch.bfloat16`), or start fewer ranks on a node"
    )


@check(CONDITION)
def host_memory_is_enough(
    demand: MemoryDemand,
    resources: Resources,
    detail: MemoryDetail | Missing,
    os: OsInfo | Missing,
) -> Iterator[Finding]:
    """Compares the demand with the memory that the job can get, then with what is free."""
    huge = 0 if isinstance(detail, Missing) else detail.hugepages_bytes
    limit = resources.memory_limit_bytes
    usable = min(resources.memory_usable_bytes, resources.memory_total_bytes - huge)
    free = resources.memory_available_bytes
    needed = demand.host_bytes
    sure = demand.host_state_bytes
    floor = demand.host_least_bytes
    if demand.source == "command":  # how it loads the weights, and what it trains, may differ
        needed = sure = floor
    unsure = demand.source == "command" and demand.host_floor_bytes is not None
    open_ways = floor <= usable < sure
    lost = 0 if unsure else demand.pinned_rounding_bytes
    evidence: dict[str, Any] = {
        "source": demand.source,
        "needed_gib": gib(needed),
        "floor_gib": gib(floor),
        "usable_gib": gib(usable),
        "available_gib": gib(free),
        "cgroup_limit_gib": None if limit is None else gib(limit),
        "hugepages_gib": gib(huge),
        "swap_gib": gib(resources.swap_total_bytes),
        "pinned_rounding_gib": gib(lost),
        "ranks": demand.ranks_here,
        "items": demand.host_items,
    }
    if sure <= usable and needed <= free:
        yield ok(**evidence)
        return
    short = sure > usable
    have = usable if short else free
    place = "its cgroup allows" if limit == usable else "this machine has"
    holds = f"{place} {gib(have)} GiB" if short else f"{gib(have)} GiB are free"
    rounding = (
        f", of which {gib(lost)} GiB are lost to the rounding of pinned blocks" if lost else ""
    )
    hints = []
    if lost and needed - lost <= have:
        hints.append('set `"pin_memory": false`, which avoids the rounding')
    wsl = isinstance(os, OsInfo) and os.wsl
    hints.append(
        "raise `memory=` in `.wslconfig` on the Windows side"
        if wsl
        else "request more memory (`--mem`, `resources.limits.memory`)"
        if limit is not None
        else "stop other programs"
        if sure <= usable
        else "use more nodes"
    )
    hints.append(f"or {_less(demand)}")
    yield (fail if floor > usable else warn)(
        f"{demand.what} needs {gib(needed)} GiB of host memory"
        f"{'' if demand.source == 'command' else f' ({itemized(demand.host_items)})'}"
        f"{' even for LoRA adapters on 4-bit weights' if unsure else ''}"
        f"{rounding}, but {holds}"
        f"{f'; {otherwise(demand)}' if open_ways else ''}",
        effect="the kernel kills a rank (exit code -9); pinned memory cannot be swapped out",
        hint=", ".join(hints),
        **evidence,
    )
