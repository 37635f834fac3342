"""Durations and figures in words."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """A duration in words.

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


def rounded(value: float, digits: int) -> str:
    """A figure with its leading digits, never with an exponent where it is large.

    >>> rounded(0.123456, 4), rounded(76500.0, 4), rounded(214.0, 4)
    ('0.1235', '76,500', '214')
    """
    return f"{value:,.0f}" if abs(value) >= 10**digits / 10 else f"{value:.{digits}g}"
