"""What followed from a cause or the first error: explained lines, and failures of other ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dsdoctor.logs.candidates import Choice, Order, when
from dsdoctor.logs.echoes import is_echo
from dsdoctor.logs.errors import Error
from dsdoctor.logs.hits import Hit, Scan
from dsdoctor.model.diagnosis import Consequence, Line

#: Most that are listed; in a job of 1,024 ranks most ranks fail alike.
MOST = 64


def consequences(
    choice: Choice, scans: Sequence[Scan], line: Callable[[int, int, str, int | None], Line]
) -> tuple[Consequence, ...]:
    """The first line of each explained condition and echo on each rank, the earliest first.

    Args:
        choice: the cause or error, and what it explains.
        scans: the logs.
        line: makes a line of the report from log index, line number, text and rank.
    """
    many = len(scans) > 1
    rows: list[tuple[Order, str, Hit | Error]] = [
        (when(hit, many=many), hit.known.condition, hit)
        for scan in scans
        for hit in scan.hits
        if hit.known.condition in choice.masked
    ]
    taken = {(hit.source, hit.line) for _, _, hit in rows}
    rows += [
        (when(error, many=many), error.type, error)
        for scan in scans
        for error in scan.errors
        if is_echo(error) and (error.source, error.line) not in taken
    ]
    found: dict[tuple[str, int | None], Consequence] = {}
    for _, name, item in sorted(rows, key=lambda row: row[0]):
        if len(found) < MOST:
            said = line(item.source, item.line, item.text, item.rank)
            found.setdefault((name, item.rank), Consequence(name=name, line=said))
    return tuple(found.values())
