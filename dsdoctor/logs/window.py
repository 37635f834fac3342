"""A block of a log with the context before it, and the lines around a place in it."""

from __future__ import annotations

from dsdoctor.logs import reader
from dsdoctor.logs.pieces import LONGEST
from dsdoctor.logs.stamps import stamp

#: Lines of context on either side of a hit.
CONTEXT = 12
#: Bytes of context on either side of a hit, where lines are long.
CONTEXT_BYTES = 1 << 16


class Window:
    """A block after `begin`, with context before it, and access to its lines."""

    def __init__(self, data: bytes, begin: int) -> None:
        self.data = data
        self.begin = begin

    def line(self, start: int) -> bytes:
        """The line that begins at a place."""
        end = self.data.find(b"\n", start)
        return self.data[start:] if end < 0 else self.data[start:end]

    def back(self, start: int, lines: int) -> int:
        """Start of the line so many lines before, as far as the window reaches."""
        least = max(0, start - CONTEXT_BYTES)
        for _ in range(lines):
            if start <= least:
                return least
            start = self.data.rfind(b"\n", least, start - 1) + 1 or least
        return start

    def around(self, start: int) -> str:
        """The line at a place with CONTEXT lines on either side."""
        data = self.data
        first = self.back(start, CONTEXT)
        most = min(len(data), start + CONTEXT_BYTES)
        end = start
        for _ in range(CONTEXT + 1):
            end = data.find(b"\n", end, most) + 1
            if end == 0:
                end = most
                break
        near = data[first:end]
        if near.isascii() and len(near) <= LONGEST:
            return near.decode()
        lines = near.split(b"\n")
        return "\n".join(reader.decode(line[:LONGEST]) for line in lines)

    def lines(self, start: int, before: int, after: int) -> tuple[list[str], list[str]]:
        """So many lines before the line, and after it."""
        first = self.back(start, before)
        front = self.data[first:start].split(b"\n")[:-1]
        most = min(len(self.data), start + CONTEXT_BYTES)
        behind = self.data[start:most].split(b"\n", after + 1)[1 : after + 1]
        return (
            [reader.decode(line[:LONGEST]) for line in front],
            [reader.decode(line[:LONGEST]) for line in behind],
        )

    def is_dated(self, start: int) -> bool:
        """Whether the line has a time stamp of its own."""
        return bool(stamp(reader.decode(self.line(start)[:LONGEST])))

    def when(self, start: int) -> str:
        """Time stamp of the line or of one shortly before it."""
        for _ in range(CONTEXT):
            if found := stamp(reader.decode(self.line(start)[:LONGEST])):
                return found
            if start == 0:
                break
            start = self.back(start, 1)
        return ""
