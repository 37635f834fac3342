"""Events in logs of the kernel or of a scheduler that lie long before the run."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from dsdoctor.logs.hits import Hit, Scan

#: Hours between two events that are not of one run: the clocks may be in different time zones.
APART = 26


def is_of_the_system(scan: Scan) -> bool:
    """Whether no rank wrote a log: it is the kernel's, or a scheduler's."""
    ranks = {hit.rank for hit in scan.hits} | {error.rank for error in scan.errors}
    return ranks <= {None} and not scan.failures and scan.step is None


def without_old(hits: list[Hit], scans: Sequence[Scan]) -> list[Hit]:
    """Hits without those of the system's logs after which the run went on for more than a day."""
    reached = [_hours(scan.step[1]) for scan in scans if scan.step is not None]
    last = max((hours for hours in reached if hours is not None), default=None)
    if last is None:
        return hits
    system = {index for index, scan in enumerate(scans) if is_of_the_system(scan)}
    return [
        hit
        for hit in hits
        if hit.source not in system or (hours := _hours(hit.when)) is None or last - hours < APART
    ]


def _hours(when: str) -> int | None:
    """Hours of a time stamp within a year; None without one.

    >>> _hours("03-01 07:08:09.5") - _hours("02-28 07:08:09.5"), _hours("")
    (24, None)
    """
    try:
        day = dt.date(2001, int(when[:2]), int(when[3:5]))  # no day too many in March
        return day.toordinal() * 24 + int(when[6:8])
    except ValueError:
        return None
