"""A path that the run needs is not there, or is empty.

## Why it matters
Data that is not mounted in this container or on this node is noticed only after minutes of start-up
by every rank at once; an empty folder, where the mount has failed, gives an empty data set.

## What to do
Mount the file system here, copy the data, or correct the path.

## References
- `dsdoctor check --path DATA`
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import Condition, Finding, Scope, Storage, check, fail, ok, warn

CONDITION = Condition("path-missing", id="DSD1502", scope=Scope.JOB, since="0.1")


@check(CONDITION)
def paths_are_there(storage: Storage) -> Iterator[Finding]:
    """Every `--path` exists, may be read, and holds something."""
    asked = [place for place in storage.places if place.purpose == "--path"]
    for place in asked:
        if place.hung:
            continue  # `file-system-hangs` speaks
        evidence: dict[str, Any] = {
            "path": place.path,
            "mount": place.mount,
            "file_system": place.file_system,
        }
        if place.error is not None:
            yield fail(
                f"`{place.path}` (`--path`) cannot be read: {place.error}",
                effect="the run finds no data",
                hint="give this user the right to read it",
                **evidence,
            )
        elif place.kind is None:
            yield fail(
                f"`{place.path}` (`--path`) is not there; the nearest folder that is there is "
                f"`{place.parent}`",
                effect="the run finds no data",
                hint="mount or copy it here, or correct the path",
                parent=place.parent,
                **evidence,
            )
        elif place.empty:
            yield warn(
                f"`{place.path}` (`--path`) is an empty {'folder' if place.kind == 'dir' else place.kind}",
                effect="the run finds no data",
                hint="look whether the file system that belongs there is mounted",
                **evidence,
            )
        else:
            yield ok(kind=place.kind, **evidence)
