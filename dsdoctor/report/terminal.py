"""The same report in colour, through rich. Words never depend on it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from dsdoctor.model.report import Report
from dsdoctor.report import text

STYLES = {
    "head": "bold",
    "fail": "bold red",
    "crash": "bold red",
    "warn": "bold yellow",
    "unknown": "bold magenta",
    "ok": "green",
    "skip": "dim",
    "effect": "",
    "hint": "cyan",
    "sum": "bold",
    "note": "dim",
}


def show(report: Report, console: Console, *, verbosity: int = 0) -> None:
    """Prints a report; text is never read as markup."""
    show_lines(text.lines(report, verbosity=verbosity, width=console.width), console)


def show_lines(lines: Iterable[text.Line], console: Console) -> None:
    """Prints lines of any report in colour."""
    for line in lines:
        console.print(Text(line.text, style=STYLES.get(line.style, "")), soft_wrap=True)
