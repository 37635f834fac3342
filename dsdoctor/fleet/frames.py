"""Reassembles a collector's recording from the output of one node or of many."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dsdoctor.model import decode
from dsdoctor.model.decode import DecodeError

SCHEMA = "dsdoctor/recording"
MARK = b"\x1edsdoctor-node"
_FRAME = re.compile(
    rb"\x1edsdoctor-node ([^\s]{1,300}) ([0-9]{1,6})/([0-9]{1,6}) ([A-Za-z0-9+/=]{1,8192})"
)
#: Prefix of each line of a node: `gpu1: ` (pdsh), `0: ` (srun --label).
_CHANNEL = re.compile(rb"([^\s:]{1,300}): ")
#: Bytes that one node may print; a recording has about 30 KiB.
MOST_BYTES = 32 << 20
#: A line of the collector has about 1 KiB; a longer line is not one.
LONGEST_LINE = 16 << 10


class BrokenFramesError(ValueError):
    """Lines of a recording exist, but do not form one; the text gives the reason."""


def document(lines: Iterable[bytes]) -> dict[str, Any] | None:
    """The recording in the lines of one node; None if there is none.

    Lines may be prefixed (`gpu1: …`, `3: …`) and surrounded by others, in any order. The node's
    name in the recording is not trusted: the channel shows which node printed a line.

    Raises:
        BrokenFramesError: a line is missing, or the recording exceeds a limit.
    """
    pieces: dict[int, bytes] = {}
    first: tuple[bytes, bytes] | None = None
    for line in lines:
        found = _FRAME.search(line)
        if found is None:
            continue
        head = (found[1], found[3])
        first = first or head
        if head == first:
            pieces.setdefault(int(found[2]), found[4])
    if first is None:
        return None
    if len(pieces) != int(first[1]):
        raise BrokenFramesError(f"only {len(pieces)} of its {int(first[1])} lines arrived")
    try:
        packed = base64.b64decode(b"".join(pieces[number] for number in sorted(pieces)))
        value = decode.json(decode.inflate(packed))
    except (ValueError, DecodeError) as error:
        raise BrokenFramesError(str(error)) from None
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise BrokenFramesError(f"its `schema` is not `{SCHEMA}`")
    return value


class Kept:
    """The start of the output of a node or an engine: the rest must not fill our memory."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def take(self, chunk: bytes) -> None:
        """Stores a chunk, up to `MOST_BYTES` in all."""
        self._kept += chunk[: MOST_BYTES - len(self._kept)]

    def take_line(self, line: bytes) -> None:
        """Stores a line without its line end."""
        self.take(line + b"\n")

    def whole(self) -> bytes:
        """All stored output."""
        return bytes(self._kept)

    def lines(self) -> list[bytes]:
        """The stored lines, without line ends."""
        return self.whole().split(b"\n")


class Channels:
    """Lines of many nodes, as an engine mixes them, sorted by the node that printed them.

    Args:
        other: called with each line that is not part of a recording.
    """

    def __init__(self, other: Callable[[bytes], None] | None = None) -> None:
        self._other = other
        self._lines: dict[str, list[bytes]] = {}
        self._bytes: dict[str, int] = {}
        self._received: dict[str, float] = {}
        self._rest = b""
        self._skipping = False

    def take(self, chunk: bytes) -> None:
        """Adds output of the engine, which may end within a line."""
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        for line in whole:
            if not self._skipping:
                self._line(line)
            self._skipping = False
        if len(self._rest) > LONGEST_LINE:
            self._rest, self._skipping = b"", True

    def end(self) -> None:
        """Adds the last line, which may have no line end."""
        if not self._skipping:
            self._line(self._rest)
        self._rest = b""

    def _line(self, line: bytes) -> None:
        if MARK not in line:
            if self._other is not None:
                self._other(line)
            return
        if len(line) > LONGEST_LINE:
            return
        found = _CHANNEL.match(line)
        if found is None:
            return
        name = found[1].decode("utf-8", "replace")
        total = self._bytes.get(name, 0) + len(line)
        if total <= MOST_BYTES:
            self._bytes[name] = total
            self._lines.setdefault(name, []).append(line)
            self._received[name] = time.time()

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def document(self, name: str) -> dict[str, Any] | None:
        """The recording that came through a channel; see `document`."""
        return document(self._lines.get(name, ()))

    def received(self, name: str) -> float:
        """When the last line of a channel arrived, in seconds since the epoch."""
        return self._received[name]
