"""A file system that the run needs does not answer.

## Why it matters
Whoever touches a network mount whose server is gone waits for ever and cannot be killed. Ranks that
load data or write there hang without a message.

## What to do
Look at the server and the network, then remount (`umount -l`, `mount`); restart the node if
processes stay in state D.

## References
- nfs(5): `hard`, `soft`, `timeo`
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, Finding, Scope, Storage, check, fail, ok

from ._util import name

CONDITION = Condition("file-system-hangs", id="DSD1506", scope=Scope.NODE, since="0.1")


@check(CONDITION)
def file_systems_answer(storage: Storage) -> Iterator[Finding]:
    """Every place of the run answered in time."""
    hung = [place for place in storage.places if place.hung]
    for place in hung:
        yield fail(
            f"{name(place)} does not answer: {place.error}",
            effect="ranks that touch it hang and cannot be killed",
            hint="look at the file server, then remount it or use another node",
            path=place.path,
            purpose=place.purpose,
        )
    if not hung:
        yield ok(places=len(storage.places))
