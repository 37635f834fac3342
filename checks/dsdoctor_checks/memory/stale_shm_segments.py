"""Shared-memory segments of ended processes hold memory.

## Why it matters
DeepSpeed, NCCL, torch and data loaders exchange data through files in /dev/shm. A process that is
killed does not remove its files, and DeepSpeed's CPU ranks leave theirs (66 MiB each) even after a
successful run. The files are in RAM: the memory stays in use until they are removed or the node
reboots.

## What to do
Remove the segments that no process maps. `dsdoctor fix remove-stale-shm` removes those of your user,
and checks each again before it does.

## References
- shm_overview(7)
- deepspeed csrc/cpu/comm/shm.cpp: `deepspeed_allreduce_buffer`
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Limits,
    MemoryDetail,
    Scope,
    check,
    ok,
    warn,
    without_fix,
)
from dsdoctor_checks.host._util import MIB

CONDITION = Condition(
    "stale-shm-segments",
    id="DSD1406",
    scope=Scope.NODE,
    since="0.1",
    fixes=("remove-stale-shm",),
    leads_to=("host-memory-low", "shm-nearly-full"),
)


#: Accounts named in the message.
_NAMED = 3


class StaleShmLimits(Limits, frozen=True, kw_only=True):
    """How much stale shared memory is worth a warning.

    Attributes:
        min_mib: all stale segments together.
    """

    min_mib: float = 64


@check(CONDITION)
def no_segment_is_stale(detail: MemoryDetail, limits: StaleShmLimits) -> Iterator[Finding]:
    """Warns when segments that no process maps hold memory."""
    left = detail.shm_left
    size = sum(left.values()) // MIB
    if size < limits.min_mib:
        yield ok(segments=len(left), mib=size)
        return
    several = len(left) != 1
    others = len(left) - len(detail.shm_mine)
    whose = (
        f"{others} of them {'belongs' if others == 1 else 'belong'}" if several else "it belongs"
    )
    theirs = f"; {whose} to other users{_owners(detail)}" if others else ""
    finding = warn(
        f"{len(left)} shared-memory {'segments' if several else 'segment'} in /dev/shm"
        f" {'hold' if several else 'holds'} {size} MiB, but no process maps"
        f" {'them' if several else 'it'}{theirs}",
        effect="the memory stays in use until the files are removed or the node reboots",
        hint="run `dsdoctor fix remove-stale-shm`"
        if detail.shm_mine
        else "ask their owners to remove them, or remove them as root",
        segments=len(left),
        mib=size,
        of_other_users=others,
        left=left,
        mib_by_uid={uid: held // MIB for uid, held in detail.shm_owners.items()},
    )
    yield finding if detail.shm_mine else without_fix(finding)


def _owners(detail: MemoryDetail) -> str:
    """The accounts that hold the most, by number: a snapshot contains no names of accounts.

    >>> _owners(MemoryDetail(shm_owners={"1007": 66 << 20, "0": 1 << 20}))
    ' (by owner: uid 1007 66 MiB, uid 0 1 MiB)'
    """
    rows = sorted(detail.shm_owners.items(), key=lambda row: (-row[1], row[0]))[:_NAMED]
    words = ", ".join(f"uid {uid} {held // MIB} MiB" for uid, held in rows)
    return f" (by owner: {words})" if words else ""
