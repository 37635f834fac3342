"""Units of memory, and numbers in text."""

from __future__ import annotations

MIB = 1 << 20
GIB = 1 << 30
#: Letters of binary units to bytes, as tools print them.
BINARY = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
#: More digits than that are a mistake.
LONGEST = 15


def whole(text: str) -> int | None:
    """A number in plain digits from an untrusted text; None for any other text.

    Python refuses more than 4,300 digits, and calls digits what `int` does not read.

    >>> whole("8"), whole("-1"), whole("²"), whole("9" * 5000)
    (8, None, None, None)
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= LONGEST else None


def gib(size: int) -> str:
    """Bytes as GiB, without the unit.

    >>> gib(3 << 29)
    '1.5'
    """
    return f"{size / GIB:.1f}"


def in_words(size: int) -> str:
    """Bytes with the unit that suits them.

    >>> in_words(3 << 29), in_words(48 << 20)
    ('1.5 GiB', '48 MiB')
    """
    return f"{gib(size)} GiB" if size >= GIB else f"{size / MIB:.0f} MiB"
