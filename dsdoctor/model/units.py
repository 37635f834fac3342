"""Units of memory."""

from __future__ import annotations

MIB = 1 << 20
GIB = 1 << 30


def gib(size: int) -> str:
    """Bytes as GiB, without the unit.

    >>> gib(3 << 29)
    '1.5'
    """
    return f"{size / GIB:.1f}"
