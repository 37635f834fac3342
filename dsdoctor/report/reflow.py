"""Markdown for a terminal: paragraphs wrapped to its width, everything else unchanged."""

from __future__ import annotations

import re

from dsdoctor.report.wrap import wrap

_ITEM = re.compile(r"[-*] |\d+\. ")
_FENCE = "```"


def reflow(markdown: str, columns: int) -> str:
    r"""The text with its paragraphs and list items wrapped; code, headings and tables stay.

    >>> print(reflow("# a b c\n\none two\nthree\n\n- four five six\n- seven\n", 9))
    # a b c
    <BLANKLINE>
    one two
    three
    <BLANKLINE>
    - four
      five
      six
    - seven
    <BLANKLINE>
    """
    lines: list[str] = []
    block: list[str] = []
    fenced = False

    def close() -> None:
        if block:
            item = _ITEM.match(block[0])
            mark = item[0] if item else ""
            text = " ".join(block).removeprefix(mark)
            lines.extend(wrap(text, columns, mark, " " * len(mark), break_long=False))
            block.clear()

    for line in markdown.splitlines():
        fence = line.startswith(_FENCE)
        if fenced or fence or not line.strip() or line.startswith(("#", "|", "    ")):
            close()
            lines.append(line)
            fenced = fenced is not fence
            continue
        if _ITEM.match(line):
            close()
        block.append(line.strip())
    close()
    return "\n".join(lines) + "\n"
