"""A file system has almost no free inodes.

## Why it matters
Each file uses an inode. When none is free, no file can be created although there is free space. The
error is the same: `No space left on device`. Builds and caches create many small files.

## What to do
Remove directories with many small files (old builds, caches, unpacked datasets), or use another
file system.

## References
- `df -i`
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, Finding, Limits, Scope, Storage, check, fail, ok, warn

from ._util import by_mount, name

CONDITION = Condition(
    "inodes-exhausted", id="DSD1503", scope=Scope.NODE, since="0.1", leads_to=("disk-full",)
)


class InodeLimits(Limits, frozen=True, kw_only=True):
    """Free inodes that a run needs.

    Attributes:
        min_files: below this a build may fail.
        fatal_files: up to this every build fails.
    """

    min_files: float = 1000
    fatal_files: float = 10


@check(CONDITION)
def files_can_be_made(storage: Storage, limits: InodeLimits) -> Iterator[Finding]:
    """Judges the free inodes of each file system that the run writes to."""
    written = [
        place
        for place in storage.places
        if place.inodes_free is not None and place.purpose != "--path" and not place.read_only
    ]
    clean = True
    for places in by_mount(written):
        place = places[0]
        free = place.inodes_free or 0
        if free >= limits.min_files:
            continue
        clean = False
        yield (fail if free <= limits.fatal_files else warn)(
            f"the file system of {name(place)} has {free} of {place.inodes_total} inodes free,"
            f" although {(place.free_bytes or 0) >> 20} MiB are free",
            effect="no file can be created: `No space left on device`",
            hint=f"find the directories with many files with `du --inodes -x"
            f" {place.mount or place.path} | sort -n | tail`, and remove what you do not need",
            path=place.path,
            mount=place.mount,
            inodes_free=free,
            inodes_total=place.inodes_total,
            free_mib=(place.free_bytes or 0) >> 20,
        )
    if clean and written:
        yield ok()
