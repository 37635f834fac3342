"""The pieces of a line that patterns see: of one overwritten by bars, and of one too long."""

from __future__ import annotations

from collections.abc import Iterable

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs import reader

#: Longest piece of a line that patterns see: many are of the kind `A.{0,80}B`, whose cost grows
#: with the length of a line that is made to be slow.
LONGEST = 2000
#: Pieces of a line that was overwritten by carriage returns and that patterns see.
MOST_SEGMENTS = 8
#: A bar of tqdm, behind which text of somebody else may stand without a line's end.
BAR = lazy(rb"\[[\d:]+<[\d:?]+, [^\]\r\n]{0,120}\]")


def segments_of(raw: bytes, literals: Iterable[str]) -> list[bytes]:
    """The pieces of a line, parted by carriage returns and bars, that can add something."""
    if literals and BAR.search(raw):
        raw = BAR.sub(lambda bar: bar[0] + b"\r", raw)
    if b"\r" not in raw:
        return [raw]
    segments = [part for part in raw.split(b"\r") if part.strip()]
    if not literals:
        return segments[-1:]
    wanted = [text.encode() for text in literals]
    return ([p for p in segments if any(w in p for w in wanted)] or segments[-1:])[:MOST_SEGMENTS]


def shortened(segment: bytes, literals: Iterable[str]) -> str:
    """At most LONGEST characters, around the first literal."""
    if len(segment) <= LONGEST:
        return reader.decode(segment)
    places = [segment.find(text.encode()) for text in literals]
    first = min((place for place in places if place >= 0), default=0)
    start = max(0, first - LONGEST // 4)
    return reader.decode(segment[start : start + LONGEST])
