"""Failures that a run outlived: it continued for long after them, so they did not end it."""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Sequence

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.echoes import is_echo
from dsdoctor.logs.errors import KEPT_ERRORS, Error
from dsdoctor.logs.hits import KEPT, Hit, Scan
from dsdoctor.logs.marks import FATAL_MARKS

#: What Slurm prints about the job itself; it is never part of an exception's text.
OF_THE_JOB = lazy(r"error: \*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT ")
#: What it prints of a job, or of a step with the time limit of its job, after which it kills all
#: processes within seconds (`KillWait` of slurm.conf, 30 s unless set).
KILLED_ALL = lazy(
    r"error: \*\*\* (?:JOB \S+ ON \S+ CANCELLED AT |STEP \S+ ON \S+ CANCELLED AT \S+ DUE TO TIME )"
)
#: Where a driver waits for Ray's tasks and actors (Ray 2.0-2.54): they end with it.
AWAITS_RAY = lazy(r"[\\/]ray[\\/]_private[\\/](?:worker|client_mode_hook)\.py$")
#: Lines that processes which are about to be killed may still print, or had buffered.
BUFFERED = 200
#: Lines after an exception on which its text may continue.
MORE = 14
#: Lines after a failure from which on the run is taken to have outlived it.
ALIVE = 1000


def same_rank(one: int | None, other: int | None) -> bool:
    """Whether two lines may be from the same rank."""
    return one is None or other is None or one == other


def ends_all(item: Hit | Error) -> bool:
    """Whether all processes of the run end with it, so progress just below it says nothing.

    Ray prints what the actors had written up to then below the exception that ended the driver.
    """
    if isinstance(item, Hit):
        return KILLED_ALL.search(item.text) is not None
    frames = item.frames
    return (
        item.traced
        and bool(frames)
        and frames[0].function == "<module>"
        and any(AWAITS_RAY.search(frame.file) for frame in frames)
    )


def covers(hit: Hit, error: Error, writers: int = 1) -> bool:
    """Whether a hit is on the lines of an exception's traceback or text.

    Args:
        hit: the hit.
        error: the exception.
        writers: number of ranks whose lines may be interleaved.
    """
    more = MORE * writers if hit.rank is not None and hit.rank == error.rank else MORE
    return (
        hit.source == error.source
        and same_rank(hit.rank, error.rank)
        and error.begun - 1 <= hit.line <= error.line + more
        and not (hit.line > error.line and OF_THE_JOB.search(hit.text))
    )


def outlived(scan: Scan, hits: Sequence[Hit], errors: Sequence[Error]) -> int:
    """The line up to which the run outlived all failures, as a long gap follows; 0 if none.

    What follows the gap must be a failure of its own, or be at the very end of the log, like a run
    that is ended from outside: echoes of a death may also come long after it.
    """
    marks = [scan.marks[name][0] for name in FATAL_MARKS if name in scan.marks]
    own = [hit.line for hit in hits if not hit.known.signature.echo]
    own += [error.line for error in errors if not is_echo(error)]
    lines = sorted({*marks, *own, *(hit.line for hit in hits), *(error.line for error in errors)})
    killing = scan.marks.get("killing", (math.inf, ""))[0]  # nothing goes on below that
    gaps = [
        (one, other)
        for one, other in itertools.pairwise(lines)
        if other - one > ALIVE and one < killing
    ]
    if not gaps:
        return 0
    before, behind = gaps[-1]
    whole = 0 < scan.whole_from <= before
    if len(errors) >= KEPT_ERRORS and not whole:
        return 0
    kept = collections.Counter(
        id(hit.known)
        for hit in hits
        if hit.line <= before and not any(covers(hit, error) for error in errors)
    )
    if max(kept.values(), default=0) >= KEPT and not whole:  # there may be more, after the line
        return 0
    if _led_to(scan, before, hits, errors):
        return 0
    at_the_end = bool(scan.tail) and behind >= scan.tail[0][0]
    return before if at_the_end or any(line >= behind for line in own) else 0


def _led_to(scan: Scan, before: int, hits: Sequence[Hit], errors: Sequence[Error]) -> bool:
    """Whether all failures after a line are known to follow from failures up to it.

    A run that kept training has outlived those; one that only waited for its peers has not.
    """
    if scan.step is not None and scan.step[0] > before:
        return False
    behind = [hit for hit in hits if hit.line > before]
    explained = {name for hit in hits if hit.line <= before for name in hit.known.signature.masks}
    return (
        bool(behind)
        and all(hit.known.condition in explained for hit in behind)
        and all(
            any(covers(hit, error) for hit in behind) for error in errors if error.line > before
        )
    )
