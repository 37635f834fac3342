"""Variables that a file sets for its job, as the pieces that are linted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from dsdoctor.lint_launches import Part
from dsdoctor.model.facts.machine import Environment
from dsdoctor.probes.environment import allowed
from dsdoctor.probes.manifest_variables import Stated

#: In a value that somebody else fills in.
_FILLED_IN = re.compile(r"[<{$`]")


def stated_variables(
    environments: Sequence[tuple[str, Mapping[str, Stated]]], rows: Sequence[str]
) -> Iterator[Part]:
    """Environments, each variable judged at its line.

    Args:
        environments: the name of a format, and what the text in it sets.
        rows: of the file.
    """
    if not environments:
        return
    # only they need the readers of pastes
    from dsdoctor.paste.lines import Line  # noqa: PLC0415
    from dsdoctor.paste.statements import Statements  # noqa: PLC0415

    told: set[frozenset[tuple[str, Stated]]] = set()
    for reader, environment in environments:
        own = {
            name: stated
            for name, stated in environment.items()
            if allowed(name) and stated.value and not _FILLED_IN.search(stated.value)
        }
        if not own or frozenset(own.items()) in told:
            continue
        told.add(frozenset(own.items()))
        statements = Statements()
        statements.reader = reader
        lines: dict[str, int] = {}
        for name, stated in own.items():
            lines[name] = stated.line
            row = rows[stated.line - 1] if 0 < stated.line <= len(rows) else ""
            statements.state(Environment, f"variables.{name}", stated.value, Line(stated.line, row))
        yield Part([], (), snapshot=statements.snapshot(), variables=lines)


def script_variables(parts: Sequence[Part], text: str) -> list[Part]:
    """What a shell script has exported where it launches a job, and sets in front of the launch.

    What depends on a branch, or on whoever starts the script, is not known and not judged.

    Args:
        parts: of the script, with its launch lines.
        text: the script.
    """
    rows = text.split("\n")
    return [
        *stated_variables(
            [
                (
                    "script",
                    {
                        name: Stated(value, _set_at(name, part.line, rows))
                        for name, value in part.environment.items()
                        if allowed(name)
                    },
                )
                for part in parts
                if part.environment
            ],
            rows,
        )
    ]


def _set_at(name: str, line: int, rows: Sequence[str]) -> int:
    """The last line before a launch that assigns a variable; the launch's if there is none."""
    assigns = re.compile(rf"(?<![\w$-]){re.escape(name)}=")
    for number in range(line, 0, -1):
        row = rows[number - 1] if number <= len(rows) else ""
        if not row.lstrip().startswith("#") and assigns.search(row):
            return number
    return line
