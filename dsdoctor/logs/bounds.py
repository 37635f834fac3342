"""What one diagnosis may cost, and what it left out to stay within that.

A log of a real run is far below each limit. A bomb of gigabytes in a small archive, a folder of
a million files, or lines that are made to be slow reach one; the diagnosis then says which part
was not read.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import msgspec

#: Seconds for reading all logs; waiting for a pipe does not count.
MOST_SECONDS = 600.0
#: Logs that are read, and entries of folders that are looked at to find them.
MOST_FILES, MOST_ENTRIES = 20_000, 400_000
#: Bytes of all logs together, unpacked.
MOST_BYTES = 64 << 30
#: What counts for a block of which nothing is left when its NULs are taken out.
BLOCK = 1 << 20
#: Characters kept of all logs together; of further logs only the first and last lines are kept.
MOST_KEPT = 64 << 20
#: Parts that are named one by one.
NAMED = 5


class Budget(msgspec.Struct):
    """What is left for one diagnosis.

    Attributes:
        seconds: for everything.
        files: logs that are read.
        size: bytes of all logs together, unpacked.
        kept: characters kept so far.
        left_out: what was not read, in the order in which it was met.
    """

    seconds: float = MOST_SECONDS
    files: int = MOST_FILES
    size: int = MOST_BYTES
    kept: int = 0
    left_out: list[str] = msgspec.field(default_factory=list)
    _begun: float = msgspec.field(default_factory=time.monotonic)
    _waited: float = 0.0
    _read: int = 0

    def exceeded(self) -> str:
        """The limit that is reached, "" if none is."""
        if time.monotonic() - self._begun - self._waited > self.seconds:
            return f"the limit of {self.seconds:g} s"
        if self._read > self.size:
            return f"the limit of {_size(self.size)}"
        return ""

    def metered(self, blocks: Iterable[bytes], *, waits: bool) -> Iterator[bytes]:
        """The blocks of a log, up to the one that reaches a limit.

        Args:
            blocks: what is read.
            waits: reading waits for another process, which is not counted.
        """
        source = iter(blocks)
        while not self.exceeded():
            begun = time.monotonic()
            block = next(source, None)
            if waits:
                self._waited += time.monotonic() - begun
            if block is None:
                return
            self._read += len(block) or BLOCK
            yield block

    def leave_out(self, what: str) -> None:
        """Notes what was not read, and why: `what` names both."""
        self.left_out.append(what)

    def told(self) -> tuple[str, ...]:
        """What was left out: the first few parts, then how many more there are."""
        more = len(self.left_out) - NAMED
        rest = [f"{more} further parts"] if more > 0 else []
        return (*self.left_out[:NAMED], *rest)


def _size(size: int) -> str:
    return f"{size >> 30} GiB" if size >= 1 << 30 else f"{size} bytes"
