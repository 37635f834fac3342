"""A file system can hold hardly any more files.

## Why it matters
Each file takes an inode. When they are used up, nothing can be made any more although space is
left: the message is the same, `No space left on device`. Builds and caches make many small files.

## What to do
Remove many small files (old build folders, caches, unpacked data sets), or use another file system.

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
    """How many more files there must be room for.

    Attributes:
        min_files: below this a build may stop half-way.
        fatal_files: up to this nothing can be built.
    """

    min_files: float = 1000
    fatal_files: float = 10


@check(CONDITION)
def files_can_be_made(storage: Storage, limits: InodeLimits) -> Iterator[Finding]:
    """Free inodes of each file system that the run writes to."""
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
            f"the file system of {name(place)} has room for {free} more files of "
            f"{place.inodes_total}, though {(place.free_bytes or 0) >> 20} MiB are free",
            effect="nothing can be written there: `No space left on device`",
            hint=f"find what holds the files with `du --inodes -x {place.mount or place.path}`",
            path=place.path,
            mount=place.mount,
            inodes_free=free,
            inodes_total=place.inodes_total,
            free_mib=(place.free_bytes or 0) >> 20,
        )
    if clean and written:
        yield ok()
