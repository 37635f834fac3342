"""Text of unknown origin, in a form that a terminal, a log or a scheduler can show."""

from __future__ import annotations

import re

#: Control characters, marks that change the direction of text, and lone surrogates.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def one_line(text: str) -> str:
    r"""One line without control characters, for names that other accounts may have chosen.

    >>> one_line("a\nb\x1b[31m \u202edcba"), one_line("a\x1b]52;c;QQ==\x07b\n  c")
    ('a b [31m dcba', 'a ]52;c;QQ== b c')
    """
    return " ".join(_CONTROL.sub(" ", text).split())


def printable(text: str) -> str:
    """Text in which each character that may control a terminal is replaced."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def shortened(text: str, length: int) -> str:
    """A text of at most `length` characters; the last one is an ellipsis if it was longer.

    >>> shortened("abcdef", 4), shortened("abcd", 4)
    ('abc…', 'abcd')
    """
    return text if len(text) <= length else text[: length - 1] + "…"
