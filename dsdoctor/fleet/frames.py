"""What a collector printed, put together again from the output of one node or of many."""

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
#: What the engine writes before each line of a node: `gpu1: ` (pdsh), `0: ` (srun --label).
_CHANNEL = re.compile(rb"([^\s:]{1,300}): ")
#: Bytes that one node may print; a recording has about 30 KiB.
MOST_BYTES = 32 << 20
#: A line of the collector has about 1 KiB; what is longer is not one.
LONGEST_LINE = 16 << 10


class BrokenFramesError(ValueError):
    """Lines of a recording are there, but make none; the text says why."""


def document(lines: Iterable[bytes]) -> dict[str, Any] | None:
    """The recording in the lines of one node; None where there is none.

    Lines may be prefixed (`gpu1: …`, `3: …`) and surrounded by others, in any order. The name that
    the collector gives itself counts for nothing: who prints something is known from the channel.

    Raises:
        BrokenFramesError: a line is lacking, or what they make exceeds a limit.
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
    """The start of what a node or an engine printed: the rest must not fill our memory."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def take(self, chunk: bytes) -> None:
        """Keeps a chunk, up to `MOST_BYTES` in all."""
        self._kept += chunk[: MOST_BYTES - len(self._kept)]

    def take_line(self, line: bytes) -> None:
        """Keeps a line that came without its end."""
        self.take(line + b"\n")

    def whole(self) -> bytes:
        """All that was kept."""
        return bytes(self._kept)

    def lines(self) -> list[bytes]:
        """The same, a line each, without their ends."""
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
        """Takes what the engine printed, whether or not it ends with a line."""
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        for line in whole:
            if not self._skipping:
                self._line(line)
            self._skipping = False
        if len(self._rest) > LONGEST_LINE:
            self._rest, self._skipping = b"", True

    def end(self) -> None:
        """Takes a last line without an end."""
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
        """When the last line of a channel came, in seconds since the epoch."""
        return self._received[name]
