"""Whether a report is colored, and how its lines reach the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator

import click

from dsdoctor.report.text import Line


def wants_colour() -> bool:
    """Whether stdout is to be colored: FORCE_COLOR, NO_COLOR, else whether it is a terminal."""
    if os.environ.get("FORCE_COLOR"):
        return True
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()


def show(lines: Callable[[int], Iterable[Line]]) -> None:
    """Prints the lines of a report in color; `lines` makes them for a width in columns."""
    from rich.console import Console  # noqa: PLC0415  # plain reports need no rich

    from dsdoctor.report import terminal  # noqa: PLC0415

    console = Console(highlight=False)
    terminal.show(lines(console.width), console)


def colored_plan(lines: list[str]) -> Iterator[str]:
    """A launch plan in color, which only repeats what the words say: chosen, or too large."""
    dim = False
    for line in lines:
        # a reason may continue over several indented lines
        refused = line.startswith(("    too large:", "    not advised:", "    alternative:"))
        dim = refused or (dim and line.startswith("    "))
        if line.startswith("> "):
            yield click.style(line, fg="green", bold=True)
        elif line.startswith("    [") and "!]" in line:
            yield click.style(line, fg="red")
        else:
            yield click.style(line, dim=True) if dim else line
