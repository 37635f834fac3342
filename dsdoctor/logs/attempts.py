"""What ended each start of the workers, if the launcher restarted them."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from dsdoctor.logs.echoes import is_echo
from dsdoctor.logs.errors import Error
from dsdoctor.logs.hits import Hit, Scan
from dsdoctor.logs.presentable import presentable
from dsdoctor.logs.shown import line_of, message_for, words_of
from dsdoctor.model.condition import Level
from dsdoctor.model.diagnosis import Attempt


def attempts(scans: Sequence[Scan], names: Sequence[str]) -> tuple[Attempt, ...]:
    """What ended each start of the workers, from the logs that show restarts."""
    found: list[Attempt] = []
    for index, scan in enumerate(scans):
        if not scan.restarts:
            continue
        starts = [line for line, _ in scan.restarts]
        ended: dict[int, Hit | Error] = {}
        items: list[Hit | Error] = [*scan.outlived, *scan.hits, *scan.errors]
        for item in sorted(filter(_ends, items), key=lambda one: one.line):
            place = bisect.bisect_left(starts, item.line)
            if place not in ended or (_echoes(ended[place]) and not _echoes(item)):
                ended[place] = item
        for place in range(len(starts) + 1):
            last = ended.get(place)
            if last is None:
                found.append(Attempt(number=place + 1, ended_by=""))
                continue
            what = message_for(last) if isinstance(last, Hit) else words_of(last)
            line = line_of(index, last.line, last.text, last.rank, names)
            found.append(
                Attempt(number=place + 1, ended_by=presentable(what.rstrip(": ")), line=line)
            )
    return tuple(found)


def _ends(item: Hit | Error) -> bool:
    """Whether a line can tell what ended a start: not what a launcher says above its first line."""
    return isinstance(item, Error) or _echoes(item) or item.known.signature.level > Level.HINT


def _echoes(item: Hit | Error) -> bool:
    """Whether a line only follows from a failure elsewhere."""
    return is_echo(item) if isinstance(item, Error) else item.known.signature.echo
