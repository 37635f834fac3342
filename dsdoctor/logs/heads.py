"""What a platform puts in front of every line of a log, learned from the log.

`prefixes` lists the heads of launchers and shippers that are known. A head of any other form is
what stands in front of a traceback's first line, if nearly all lines begin with the like of it.
"""

from __future__ import annotations

import re

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.prefixes import strip_prefixes

TRACEBACK = b"Traceback (most recent call last):"
#: Bytes of a head.
LONGEST = 200
#: Lines of a block of which the head is learned, and the share of them that begin with it.
FEWEST, SHARE = 8, 0.9
#: Bytes on either side of the traceback in which lines are counted; ends of a head that are tried.
AROUND, MOST_ENDS = 32 << 10, 12
#: Words of a head; those with a digit are numbers, times and names of hosts, and change.
WORD = lazy(rb"[0-9A-Za-z]+")
STREAMS = {b"stdout", b"stderr"}


def _pattern(head: bytes) -> re.Pattern[bytes]:
    """Heads that differ from one in their numbers alone."""
    parts: list[bytes] = []
    end = 0
    for word in WORD.finditer(head):
        text = word.group()
        parts.append(re.escape(head[end : word.start()]))
        if text in STREAMS:
            parts.append(b"std(?:out|err)")
        else:
            changes = any(48 <= code <= 57 for code in text)  # noqa: PLR2004  # digits
            parts.append(b"[0-9A-Za-z]{1,64}" if changes else text)
        end = word.end()
    return re.compile(b"(?m)^" + b"".join(parts) + re.escape(head[end:]))


def learned(block: bytes) -> re.Pattern[bytes] | None:
    """The head of a block's lines; None where they have none, or one that `prefixes` lists."""
    at = block.find(TRACEBACK)
    if at < 0:
        return None
    start = block.rfind(b"\n", 0, at) + 1
    head = block[start:at]
    if not WORD.search(head) or len(head) > LONGEST:
        return None
    if strip_prefixes(f"{head.decode('utf-8', 'replace')}Traceback")[0] == "Traceback":
        return None
    first = block.rfind(b"\n", 0, max(0, start - AROUND)) + 1
    near = block[first : at + AROUND]
    lines = sum(1 for line in near.splitlines() if line.strip())
    if lines < FEWEST:
        return None
    # what a launcher put in front of the rank's own lines ends the head sooner
    ends = [len(head), *(end for end in range(len(head) - 1, 0, -1) if head[end - 1 : end] == b" ")]
    for end in ends[:MOST_ENDS]:
        pattern = _pattern(head[:end])
        told = WORD.search(head, 0, end) and _is_fixed(head[:end])
        if told and _lines(pattern, near) >= SHARE * lines:
            return pattern
    return None


def _is_fixed(head: bytes) -> bool:
    """Whether a head is more than a word that changes, which any line may begin with."""
    changing = (word for word in WORD.findall(head) if any(48 <= code <= 57 for code in word))  # noqa: PLR2004  # digits
    for word in changing:
        head = head.replace(word, b"", 1)
    return bool(head.strip())


def _lines(pattern: re.Pattern[bytes], text: bytes) -> int:
    return sum(1 for _ in pattern.finditer(text))


class Heads:
    """Takes the head off the lines of one log, from the block on in which it is learned."""

    def __init__(self) -> None:
        self._pattern: re.Pattern[bytes] | None = None

    def cut(self, block: bytes) -> bytes:
        """A block without the head of its lines; the number of lines stays the same."""
        self._pattern = self._pattern or learned(block)
        return block if self._pattern is None else self._pattern.sub(b"", block)
