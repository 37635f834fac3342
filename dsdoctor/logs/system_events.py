"""Events in logs of the kernel or of a scheduler that are from long before the failure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from dsdoctor.logs.hits import Hit, Scan

#: Hours after which two events are unrelated: the clocks may be in different time zones.
APART = 26


def is_of_the_system(scan: Scan) -> bool:
    """Whether a log was not written by a rank, but by the kernel or a scheduler."""
    ranks = {hit.rank for hit in scan.hits} | {error.rank for error in scan.errors}
    return ranks <= {None} and not scan.failures and scan.step is None


def without_old(hits: list[Hit], scans: Sequence[Scan]) -> list[Hit]:
    """Hits without those in system logs that are more than a day older than the run's last step."""
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
    """The hours of a time stamp since an arbitrary origin; None if there is no time stamp.

    >>> _hours("03-01 07:08:09.5") - _hours("02-28 07:08:09.5"), _hours("")
    (24, None)
    """
    try:
        day = dt.date(2001, int(when[:2]), int(when[3:5]))  # stamps have no year; not a leap year
        return day.toordinal() * 24 + int(when[6:8])
    except ValueError:
        return None
