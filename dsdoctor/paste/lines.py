"""Lines of a pasted text, without the additions of mail, Markdown, browsers and terminals."""

from __future__ import annotations

import html
import re
from typing import NamedTuple

#: Escape sequences, also where the escape character itself was lost on the way (`[92m[OKAY][0m`).
_CODES = re.compile(
    r"\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)"
    r"|\x1b\[[0-9;?]{0,20}[@-~]|\x1b[()][A-Z0-9]|\x1b[@-Z=>]"
    r"|\[(?:\d{1,3}(?:;\d{1,3}){0,3})m"
)
_QUOTE = re.compile(r"^(?:[ \t]{0,3}>[ \t]?){1,8}")
_TAGS = re.compile(
    r"</?(?:details|summary|pre|code|p|br|div|span|b)(?:\s[^<>]{0,200})?/?>", re.IGNORECASE
)
#: The title of an issue: a heading of the first level, or as GitHub's command line prints it.
_TITLE = re.compile(r"^(?:#[ \t]+|title:[ \t]+)(?=\S)")
#: What editors and web pages add without a trace: marks of byte order, of joining and of direction.
_INVISIBLE = dict.fromkeys(map(ord, "\ufeff\u200b\u200c\u200d\u200e\u200f\u2060"))
#: Of a Chinese input method, between a name and its value.
_WIDE_COLON = re.compile(r"\s*：\s*")
_FENCE = re.compile(r"^\s{0,3}(?:```|~~~)")
#: No tool prints a longer line that a reader uses; conda's and lscpu's flags are shorter.
LONGEST = 4000
#: Lines of a text that are read, far more than any issue has.
MOST_LINES = 200_000


class Line(NamedTuple):
    """One line.

    Attributes:
        number: its number in the text, from 1.
        text: its text, without quoting and codes.
        fence: it opens or closes a fenced block.
        quoted: a mail program or Markdown marked it as quoted.
    """

    number: int
    text: str
    fence: bool = False
    quoted: bool = False


def lines_of(text: str) -> list[Line]:
    r"""Cleaned lines of a text; none is dropped, so the numbers are those of the text.

    >>> [line.text for line in lines_of("> ninja .. \x1b[92m[OKAY]\x1b[0m\n>&gt; a")]
    ['ninja .. [OKAY]', '> a']
    """
    found = []
    for number, raw in enumerate(re.split(r"\r?\n", text)[:MOST_LINES], 1):
        line = _CODES.sub("", raw[:LONGEST].replace("\x08", ""))
        line = line.rstrip("\r").rpartition("\r")[2]  # the last overwrite of the line
        line, quotes = _QUOTE.subn("", line)
        fence = bool(_FENCE.match(line))
        line = html.unescape(_TAGS.sub("", line)).replace("\N{NO-BREAK SPACE}", " ")
        if not line.isascii():
            line = _WIDE_COLON.sub(": ", line.translate(_INVISIBLE))
        found.append(Line(number, line.rstrip(), fence, bool(quotes)))
    return found


def with_bare_title(lines: list[Line]) -> tuple[int, list[str]]:
    """The number of the title's line, 0 if there is none, and the lines with a bare title.

    >>> with_bare_title([Line(1, "# CUDA error"), Line(2, "on 2 GPUs")])
    (1, ['CUDA error', 'on 2 GPUs'])
    """
    texts = [line.text for line in lines]
    place = next((index for index, text in enumerate(texts) if text.strip()), None)
    if place is None or not (found := _TITLE.match(texts[place])):
        return 0, texts
    texts[place] = texts[place][found.end() :]
    return lines[place].number, texts
