"""Removes shared-memory segments of this user that no process maps.

## What it does
Removes the files in /dev/shm that DeepSpeed, NCCL, torch or a data loader created, that belong to
this user, and that no process maps. Before it removes a file it reads the maps of the processes
again, and stops if one maps the file.

## Undo
None: the content belongs to processes that have ended.
"""

from __future__ import annotations

from dsdoctor.api import Impossible, MemoryDetail, Plan, Remove, fix

NAME = "remove-stale-shm"
CONDITIONS = ("stale-shm-segments",)


@fix(NAME)
def remove_stale_shm(detail: MemoryDetail) -> Plan | Impossible | None:
    """One step for each segment."""
    if not detail.shm_left:
        return None
    if not detail.shm_mine:
        return Impossible(why="the stale segments belong to other users; run this as root, or ask "
                          "their owners to run it")  # fmt: skip
    return Plan(
        name=NAME,
        title="remove stale shared-memory segments from /dev/shm",
        steps=tuple(
            Remove(
                remove=path,
                segment=True,
                why=f"no process maps it, and it holds {detail.shm_left[path] / (1 << 20):.0f} MiB",
            )
            for path in sorted(detail.shm_mine)
        ),
        proves=CONDITIONS,
        undo="none: the processes that used the segments have ended",
    )
