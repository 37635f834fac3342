"""Writes coverage.md: every check that other tools make, against the condition that covers it.

    python benchmarks/coverage.py          writes it
    python benchmarks/coverage.py --check  exits with 1 if it is stale

The rows are in coverage_rows.txt; whether a condition exists is asked of the built-in pack.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from dsdoctor import packs

HERE = Path(__file__).parent
ROWS = HERE / "coverage_rows.txt"
TARGET = HERE / "coverage.md"
#: Mark of a command that does it where no condition does.
COMMAND = "!"
#: Mark of a condition that another branch brings.
EXPECTED = "?"


@dataclass(frozen=True)
class Row:
    """One check of somebody's.

    Attributes:
        area: its kind.
        check: what is looked at.
        conditions: ours that cover it.
        expected: of these, those that may not be there yet.
        commands: other dsdoctor commands that do it.
        note: why it is left out, or what is to be known.
    """

    area: str
    check: str
    conditions: tuple[str, ...]
    expected: frozenset[str]
    commands: tuple[str, ...]
    note: str


def parse(text: str) -> list[Row]:
    """The rows of a text; a line that is none is an error with its number."""
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split("|")]
        if len(fields) != 4 or not all(fields[:3]):
            raise ValueError(f"line {number} has not the form `area | check | conditions | note`")
        words = [] if fields[2] == "-" else fields[2].split()
        names = [word for word in words if not word.startswith(COMMAND)]
        rows.append(
            Row(
                area=fields[0],
                check=fields[1],
                conditions=tuple(name.rstrip(EXPECTED) for name in names),
                expected=frozenset(
                    name.rstrip(EXPECTED) for name in names if name.endswith(EXPECTED)
                ),
                commands=tuple(
                    word.removeprefix(COMMAND) for word in words if word.startswith(COMMAND)
                ),
                note=fields[3],
            )
        )
    return rows


def render(rows: list[Row]) -> str:
    """The page."""
    units = {unit.condition.name: unit for unit in packs.load(builtin_only=True)}

    def shown(name: str) -> str:
        unit = units.get(name)
        if unit is None:
            return f"{name} (not there yet)"
        how = "" if unit.check else " (from logs)"
        return f"[{name}](../docs/conditions/{name}.md){how}"

    def covered(row: Row) -> bool:
        return any(name in units for name in row.conditions)

    done = sum(covered(row) for row in rows)
    elsewhere = sum(bool(row.commands) and not row.conditions for row in rows)
    left = sum(not row.conditions and not row.commands for row in rows)
    waiting = len(rows) - done - elsewhere - left
    checked = sum(any(n in units and units[n].check for n in row.conditions) for row in rows)
    counts = (
        f"{len(rows)} rows: {done} covered ({checked} by a check beforehand, {done - checked} from"
        f" logs alone), {elsewhere} by another command, {left} left out, {waiting} not there yet."
    )
    lines = [
        "# What other tools check, and what covers it here",
        "",
        "Written by `python benchmarks/coverage.py` from `coverage_rows.txt`; do not edit.",
        "",
        "The rows are the union of the checks of 22 tools for clusters and of those for one",
        "environment (study of 2026-08), in our own words. A row without a condition is left out",
        "on purpose, and says why.",
        "",
        counts,
    ]
    area = ""
    for row in rows:
        if row.area != area:
            area = row.area
            lines += ["", f"## {area}", "", "| check | covered by | note |", "|---|---|---|"]
        commands = [f"`dsdoctor {name}`" for name in row.commands]
        by = ", ".join([*map(shown, row.conditions), *commands]) or "left out"
        lines.append(f"| {row.check} | {by} | {row.note} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Writes the page, or says whether it is stale."""
    page = render(parse(ROWS.read_text(encoding="utf-8")))
    if "--check" in sys.argv[1:]:
        stale = not TARGET.exists() or TARGET.read_text(encoding="utf-8") != page
        if stale:
            print("coverage.md is stale: run `python benchmarks/coverage.py`")
        return int(stale)
    TARGET.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
