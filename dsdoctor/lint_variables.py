"""Variables that a file sets for its job, as the pieces that are linted."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from dsdoctor.lint_launches import Part
from dsdoctor.model.facts.machine import Environment
from dsdoctor.probes.environment import allowed
from dsdoctor.probes.manifest_variables import Stated

#: In a value that somebody else fills in.
_FILLED_IN = re.compile(r"[<{$`]")
_ASSIGNED = re.compile(r"(?<![\w$-])([A-Za-z_]\w*)=")


def stated_variables(
    reader: str,
    environments: Iterable[Mapping[str, Stated]],
    rows: Sequence[str],
    line_of: Callable[[str, int], int],
) -> Iterator[Part]:
    """Environments, each variable judged at its line.

    Args:
        reader: the name of the format.
        environments: what the text sets.
        rows: of the file.
        line_of: the line that sets a variable, given its name and the line of `Stated`.
    """
    told: set[frozenset[tuple[str, Stated]]] = set()
    for environment in environments:
        own = {
            name: Stated(stated.value, line_of(name, stated.line))
            for name, stated in environment.items()
            if allowed(name) and stated.value and not _FILLED_IN.search(stated.value)
        }
        if not own or frozenset(own.items()) in told:
            continue
        told.add(frozenset(own.items()))
        yield _part(reader, own, rows)


def _part(reader: str, environment: Mapping[str, Stated], rows: Sequence[str]) -> Part:
    # only they need the readers of pastes
    from dsdoctor.paste.lines import Line  # noqa: PLC0415
    from dsdoctor.paste.statements import Statements  # noqa: PLC0415

    statements = Statements()
    statements.reader = reader
    for name, (value, number) in environment.items():
        row = rows[number - 1] if 0 < number <= len(rows) else ""
        statements.state(Environment, f"variables.{name}", value, Line(number, row))
    lines = {name: number for name, (_, number) in environment.items()}
    return Part([], (), snapshot=statements.snapshot(), variables=lines)


def script_variables(parts: Sequence[Part], text: str) -> list[Part]:
    """What a shell script has exported where it launches a job, and sets in front of the launch.

    What depends on a branch, or on whoever starts the script, is not known and not judged.

    Args:
        parts: of the script, with its launch lines.
        text: the script.
    """
    environments = [
        {name: Stated(value, part.line) for name, value in part.environment.items()}
        for part in parts
        if part.environment
    ]
    if not environments:
        return []
    rows = text.split("\n")
    assigned: dict[str, list[int]] = {}
    for number, row in enumerate(rows, 1):
        if not row.lstrip().startswith("#"):
            for name in _ASSIGNED.findall(row):
                assigned.setdefault(name, []).append(number)

    def line_of(name: str, launch: int) -> int:
        """The last line up to a launch that assigns a variable; the launch's if there is none."""
        lines = assigned.get(name, [])
        place = bisect.bisect_right(lines, launch)
        return lines[place - 1] if place else launch

    return [*stated_variables("script", environments, rows, line_of)]
