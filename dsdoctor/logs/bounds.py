"""The limits of one diagnosis, and what it left out to stay within them.

A log of a real run is far below each limit. An archive that unpacks to terabytes, a folder of a
million files, or lines crafted to be slow reach one; the diagnosis then says which part was not
read.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import msgspec

#: Seconds for reading all logs; waiting for a pipe does not count.
MOST_SECONDS = 600.0
#: Logs that are read, and folder entries that are examined to find them.
MOST_FILES, MOST_ENTRIES = 20_000, 400_000
#: Bytes of all logs together, unpacked.
MOST_BYTES = 64 << 30
#: Size of a block; also what a block counts that is empty without its NULs.
BLOCK = 1 << 20
#: Characters kept of all logs together; of further logs less is kept (`Scan.bound`).
MOST_KEPT = 64 << 20
#: Parts that were left out and are listed individually.
NAMED = 5


class Budget(msgspec.Struct):
    """The limits of one diagnosis, and what it has used so far.

    Attributes:
        seconds: limit for reading all logs.
        files: limit on the number of logs.
        size: limit on the bytes of all logs together, unpacked.
        kept: characters kept so far.
        left_out: what was not read and why, in order.
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
        """The limit that was reached, "" if none was."""
        if time.monotonic() - self._begun - self._waited > self.seconds:
            return f"the limit of {self.seconds:g} s"
        if self._read > self.size:
            return f"the limit of {_size(self.size)}"
        return ""

    def metered(self, blocks: Iterable[bytes], *, waits: bool) -> Iterator[bytes]:
        """The blocks of a log, up to the one that reaches a limit.

        Args:
            blocks: the content.
            waits: reading waits for another process; that time does not count.
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
        """Records what was not read and why; `what` contains both."""
        self.left_out.append(what)

    def left_out_parts(self) -> tuple[str, ...]:
        """What was left out: the first few parts, then the number of the others."""
        more = len(self.left_out) - NAMED
        rest = [f"{more} further parts"] if more > 0 else []
        return (*self.left_out[:NAMED], *rest)


def _size(size: int) -> str:
    return f"{size >> 30} GiB" if size >= 1 << 30 else f"{size} bytes"
