"""Joins the lines that Windows PowerShell broke where its window ends.

Windows PowerShell (2.0-5.1) turns the standard error of a program into error records. Where the
output goes to a file (`> train.log 2>&1`, `*>`), it writes them as its window would show them:
broken at the last column, within words. PowerShell 7 writes them as they are.
"""

from __future__ import annotations

import collections
import itertools

from dsdoctor.lazy_regex import lazy

#: What it prints below the first line of a program's standard error, in every language.
MARK = b"NativeCommandError"
#: Lines that end where the window does: a frame of Python's without its end, and rows of the error
#: record, if their text continues on the next line.
_FRAME = lazy(r"\s{2,}File \"[^\"]{1,400}(?:\",? ?(?:l(?:i(?:ne? ?\d{0,9})?)?)?)?$")
_RECORD = lazy(r"    \+ CategoryInfo\s+: |\+ ~+$")
#: How a line begins that does not continue the one above it, even if that fills the window.
_BEGINS = lazy(r"Traceback \(|\s{2,}File \"|\[|\d{4}-\d\d|\s*$")
#: Below this width (columns), a line may end anywhere.
_NARROWEST = 40
#: Most lines that one line was broken into.
_MOST = 40


class Joiner:
    """Puts the lines of one log together again; its first broken lines show the width."""

    def __init__(self) -> None:
        self._width = 0

    def joined(self, block: bytes) -> bytes:
        r"""A block of whole lines, with those in one piece that PowerShell broke.

        An empty line takes the place of each further piece, so lines keep their numbers.

        >>> Joiner().joined(b"no record of PowerShell's\n")
        b"no record of PowerShell's\n"
        """
        if not self._width and MARK not in block:
            return block
        lines = block.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
        self._width = self._width or _width(lines)
        return _rejoined(lines, self._width) if self._width else block


def _rejoined(lines: list[str], width: int) -> bytes:
    at = 0
    while at < len(lines):
        first, text = at, lines[at]
        piece = text
        while _columns(piece) == width and at + 1 < min(len(lines), first + _MOST):
            if _BEGINS.match(lines[at + 1]):
                break
            at += 1
            piece, lines[at] = lines[at], ""
            text += piece
        lines[first] = text
        at += 1
    return "\n".join(lines).encode("utf-8", "replace")


def _width(lines: list[str]) -> int:
    """The columns of the window, 0 if no line shows them."""
    widths: collections.Counter[int] = collections.Counter()
    for text, following in itertools.pairwise(lines):
        record = _RECORD.match(text) and following and not following.startswith("    + ")
        if following and (record or _FRAME.match(text)):
            widths[_columns(text)] += 1
    width, _ = max(widths.items(), key=lambda row: row[1], default=(0, 0))
    return width if width >= _NARROWEST else 0


def _columns(text: str) -> int:
    if text.isascii():
        return len(text)
    import unicodedata  # noqa: PLC0415  # few lines need it

    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)
