"""The head that a platform puts before every line of a log, learned from the log.

`prefixes` lists the known heads of launchers and log shippers. Any other head is the text before a
traceback's first line, if nearly all lines begin with similar text.
"""

from __future__ import annotations

import re

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.prefixes import strip_prefixes

TRACEBACK = b"Traceback (most recent call last):"
#: Most bytes of a head.
LONGEST = 200
#: Fewest lines from which a head is learned, and the share of them that begin with it.
FEWEST, SHARE = 8, 0.9
#: Bytes on either side of the traceback in which lines are counted; most ends of a head to try.
AROUND, MOST_ENDS = 32 << 10, 12
#: Words of a head; those with a digit are numbers, times and host names, and vary.
WORD = lazy(rb"[0-9A-Za-z]+")
STREAMS = {b"stdout", b"stderr"}


def _pattern(head: bytes) -> re.Pattern[bytes]:
    """Matches heads that differ from this one only in words with digits."""
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
    """Matches the head of a block's lines; None if they have none, or one that `prefixes` lists."""
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
    # a launcher's prefix before the rank's own lines makes the common head shorter
    ends = [len(head), *(end for end in range(len(head) - 1, 0, -1) if head[end - 1 : end] == b" ")]
    for end in ends[:MOST_ENDS]:
        pattern = _pattern(head[:end])
        usable = WORD.search(head, 0, end) and _is_fixed(head[:end])
        if usable and _lines(pattern, near) >= SHARE * lines:
            return pattern
    return None


def _is_fixed(head: bytes) -> bool:
    """Whether a head contains more than words that vary, as any line may begin with those."""
    changing = (word for word in WORD.findall(head) if any(48 <= code <= 57 for code in word))  # noqa: PLR2004  # digits
    for word in changing:
        head = head.replace(word, b"", 1)
    return bool(head.strip())


def _lines(pattern: re.Pattern[bytes], text: bytes) -> int:
    return sum(1 for _ in pattern.finditer(text))


class Heads:
    """Removes the head from the lines of one log, starting with the block that shows it."""

    def __init__(self) -> None:
        self._pattern: re.Pattern[bytes] | None = None

    def cut(self, block: bytes) -> bytes:
        """A block without the heads of its lines; the number of lines is unchanged."""
        self._pattern = self._pattern or learned(block)
        return block if self._pattern is None else self._pattern.sub(b"", block)
