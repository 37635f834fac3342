"""/dev/shm is large enough but nearly full.

## Why it matters
NCCL and data loaders create files in /dev/shm when a job starts. If it is full, the job stops with
`failed to extend /dev/shm/nccl-…` or a bus error. Jobs that were killed leave their files behind.

## What to do
Remove the files that no process uses (`fuser /dev/shm/*` lists the processes), then start again.

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
    without_fix,
)
from dsdoctor_checks.host._util import MIB, ranks

CONDITION = Condition(
    "shm-nearly-full",
    id="DSD1405",
    scope=Scope.NODE,
    since="0.1",
    fixes=("remove-stale-shm",),
    leads_to=("shm-too-small",),
)


class ShmFreeLimits(Limits, frozen=True, kw_only=True):
    """Free space that a run needs, in MiB.

    Attributes:
        rank_mib: for each rank.
        small_mib: `shm-too-small` reports a /dev/shm smaller than this.
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
    """Warns when /dev/shm has too little free space, and counts its stale segments."""
    total, free = resources.shm_total_bytes, resources.shm_free_bytes
    if total is None or free is None:
        yield skip("this system has no /dev/shm")
        return
    count = ranks(run, gpus, env)
    needed = limits.rank_mib * count
    if total < limits.small_mib * MIB or free >= needed * MIB:
        yield ok(free_mib=free // MIB)
        return
    left = {} if isinstance(detail, Missing) else detail.shm_left
    size = sum(left.values()) // MIB
    one = len(left) == 1
    what = f"; {len(left)} stale segment{' holds' if one else 's hold'} {size} MiB" if left else ""
    mine = not isinstance(detail, Missing) and bool(detail.shm_mine)
    finding = warn(
        f"{free // MIB} of {total // MIB} MiB are free in /dev/shm, but {count} "
        f"{'rank needs' if count == 1 else 'ranks need'} {needed:g} MiB{what}",
        effect="NCCL and data loaders cannot create their segments",
        hint="run `dsdoctor fix remove-stale-shm`"
        if mine
        else "ask the owners of the segments to remove them, or remove them as root"
        if left
        else "list its files with `ls -l /dev/shm`, and remove those that no process uses",
        free_mib=free // MIB,
        total_mib=total // MIB,
        ranks=count,
        needed_mib=needed,
        left=left,
    )
    yield finding if mine else without_fix(finding)
