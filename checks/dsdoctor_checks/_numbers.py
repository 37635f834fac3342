"""Numbers in texts that anybody may have set to anything."""

from __future__ import annotations

#: Digits of a number that is no mistake. Python refuses more than 4,300, and calls digits what
#: `int` does not read.
LONGEST = 15


def whole(text: str) -> int | None:
    """A number in plain digits; None where the text is none.

    >>> whole("8"), whole("-1"), whole("²"), whole("9" * 5000)
    (8, None, None, None)
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= LONGEST else None
