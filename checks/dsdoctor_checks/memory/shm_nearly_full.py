"""/dev/shm is large enough but nearly full.

## Why it matters
Jobs that were killed leave their segments in /dev/shm; they hold memory until somebody removes
them. The next job cannot make its own: `failed to extend /dev/shm/nccl-…`, or a bus error.

## What to do
Remove what no process has open (`fuser /dev/shm/*` shows nothing for it), then start again.

## References
- shm_overview(7); NCCL docs: troubleshooting, shared memory
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Limits,
    MemoryDetail,
    Missing,
    Resources,
    RunNeeds,
    Scope,
    check,
    ok,
    skip,
    warn,
)
from dsdoctor_checks.host._util import MIB, ranks

CONDITION = Condition(
    "shm-nearly-full", id="DSD1405", scope=Scope.NODE, since="0.1", leads_to=("shm-too-small",)
)


class ShmFreeLimits(Limits, frozen=True, kw_only=True):
    """What must be free, in MiB.

    Attributes:
        rank_mib: for each rank.
        small_mib: a /dev/shm smaller than this is judged by `shm-too-small`.
    """

    rank_mib: float = 64
    small_mib: float = 512


@check(CONDITION)
def shm_has_room(
    resources: Resources,
    detail: MemoryDetail | Missing,
    run: RunNeeds,
    gpus: Gpus | Missing,
    env: Environment | Missing,
    limits: ShmFreeLimits,
) -> Iterator[Finding]:
    """Free space of /dev/shm, and what was left there."""
    total, free = resources.shm_total_bytes, resources.shm_free_bytes
    if total is None or free is None:
        yield skip("there is no /dev/shm here")
        return
    count = ranks(run, gpus, env)
    needed = limits.rank_mib * count
    if total < limits.small_mib * MIB or free >= needed * MIB:
        yield ok(free_mib=free // MIB)
        return
    left = {} if isinstance(detail, Missing) else detail.shm_left
    size = sum(left.values()) // MIB
    what = f"; {len(left)} segments of {size} MiB belong to no process" if left else ""
    yield warn(
        f"{free // MIB} of {total // MIB} MiB are free in /dev/shm, but {count} "
        f"{'rank wants' if count == 1 else 'ranks want'} {needed:g} MiB{what}",
        effect="NCCL and data loaders cannot make their segments",
        hint=f"remove them: `rm {' '.join(list(left)[:3])}`"
        if left
        else "see what lies there (`ls -l /dev/shm`) and remove what no process has open",
        free_mib=free // MIB,
        total_mib=total // MIB,
        ranks=count,
        needed_mib=needed,
        left=left,
    )
