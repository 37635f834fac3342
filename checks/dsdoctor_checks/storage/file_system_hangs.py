"""A file system that the run needs does not respond.

## Why it matters
A process that accesses a network mount whose server is down waits forever and cannot be killed.
Ranks that read data or write there hang without a message.

## What to do
Check the file server and the network, then remount (`umount -l`, `mount`). Reboot the node if
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
    """Fails for each place of the run that did not respond in time."""
    hung = [place for place in storage.places if place.hung]
    for place in hung:
        yield fail(
            f"{name(place)} does not respond: {place.error}",
            effect="ranks that access it hang and cannot be killed",
            hint="check the file server, then remount it or use another node",
            path=place.path,
            purpose=place.purpose,
        )
    if not hung:
        yield ok(places=len(storage.places))
