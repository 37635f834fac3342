"""The pieces of a line that patterns see, if progress bars overwrote it or it is too long."""

from __future__ import annotations

from collections.abc import Iterable

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs import reader
from dsdoctor.logs.errors import TRACEBACK
from dsdoctor.logs.samples import is_sample

#: Longest piece of a line that patterns see: many are of the form `A.{0,80}B`, whose cost grows
#: with the length of a line that was crafted to be slow.
LONGEST = 2000
#: Most pieces, separated by carriage returns, that patterns see of a line.
MOST_SEGMENTS = 8
#: A traceback that a service or JSON wrote into one line, with its ends of lines escaped, once or
#: more, and quotes with them.
ESCAPED = lazy(rb"Traceback \(most recent call last\):\\{1,4}n")
END_OF_LINE, QUOTE = lazy(rb"\\{1,4}n"), lazy(rb"\\{1,4}(?=[\"'])")
#: Most lines of such a traceback.
MOST_ESCAPED = 200
#: A tqdm bar; another writer's text may follow it on the same line.
BAR = lazy(rb"\[[\d:]+<[\d:?]+, [^\]\r\n]{0,120}\]")


def segments_of(raw: bytes, literals: Iterable[str]) -> list[bytes]:
    """The pieces of a line, split at carriage returns and bars, that can add something."""
    if TRACEBACK in literals and ESCAPED.search(raw) and not is_sample(shortened(raw, literals)):
        return [QUOTE.sub(b"", part) for part in END_OF_LINE.split(raw, MOST_ESCAPED)]
    if literals and BAR.search(raw):
        raw = BAR.sub(lambda bar: bar[0] + b"\r", raw)
    if b"\r" not in raw:
        return [raw]
    segments = [part for part in raw.split(b"\r") if part.strip()]
    if not literals:
        return segments[-1:]
    wanted = [text.encode() for text in literals]
    picked = [p for p in segments if any(w in p for w in wanted)] or segments[-1:]
    # what ended the run follows the last bar
    half = MOST_SEGMENTS // 2
    return picked if len(picked) <= MOST_SEGMENTS else picked[:half] + picked[-half:]


def shortened(segment: bytes, literals: Iterable[str]) -> str:
    """At most LONGEST bytes of a piece, around its first literal, decoded."""
    if len(segment) <= LONGEST:
        return reader.decode(segment)
    places = [segment.find(text.encode()) for text in literals]
    first = min((place for place in places if place >= 0), default=0)
    start = max(0, first - LONGEST // 4)
    return reader.decode(segment[start : start + LONGEST])
