"""Text from elsewhere as a terminal, a log or a scheduler may show it."""

from __future__ import annotations

import re

#: Control characters, marks that turn the direction of a line, and halves of characters.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def one_line(text: str) -> str:
    r"""One line without control characters; names of processes, files and nodes come from others.

    >>> one_line("a\nb\x1b[31m \u202edcba"), one_line("a\x1b]52;c;QQ==\x07b\n  c")
    ('a b [31m dcba', 'a ]52;c;QQ== b c')
    """
    return " ".join(_CONTROL.sub(" ", text).split())


def printable(text: str) -> str:
    """Text in which each character that may steer a terminal is replaced."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
