"""Times for a reader."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """A time for a reader.

    >>> duration(0.31), duration(42.4), duration(150), duration(7260)
    ('0.31 s', '42 s', '2 min 30 s', '2 h 1 min')
    """
    if seconds < 10:  # noqa: PLR2004
        return f"{round(seconds, 3):.2g} s"
    whole = round(seconds)
    if whole < 60:  # noqa: PLR2004
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:  # noqa: PLR2004
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
