"""Prints a report in color with rich; the words never depend on color."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from dsdoctor.report.text import Line

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


def show(lines: Iterable[Line], console: Console) -> None:
    """Prints the lines of a report; text is never read as markup."""
    for line in lines:
        console.print(Text(line.text, style=STYLES.get(line.style, "")), soft_wrap=True)
