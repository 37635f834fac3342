"""Whether a report is colored, and how its lines reach the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable

from dsdoctor.report.text import Line


def wants_colour() -> bool:
    """Whether stdout is to be colored: FORCE_COLOR, NO_COLOR, else whether it is a terminal."""
    if os.environ.get("FORCE_COLOR"):
        return True
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()


def show(lines: Callable[[int], Iterable[Line]]) -> None:
    """Prints the lines of a report in color, made for the terminal's width in columns."""
    from rich.console import Console  # noqa: PLC0415  # plain reports need no rich

    from dsdoctor.report import terminal  # noqa: PLC0415

    console = Console(highlight=False)
    terminal.show(lines(console.width), console)
