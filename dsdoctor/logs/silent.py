"""A process that exited first without printing why: only other processes report it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dsdoctor.logs import ray_deaths
from dsdoctor.logs.candidates import Candidate
from dsdoctor.logs.echoes import is_echo
from dsdoctor.logs.errors import Error
from dsdoctor.logs.hits import Failure, Scan
from dsdoctor.logs.launcher_lines import EXITED
from dsdoctor.logs.marks import mark_pattern
from dsdoctor.model.condition import Level

#: Marks of a death that a launcher reports with its exit status.
REPORTS = ("died", "exit-code", "exitcode")
#: Statuses that a program chooses itself: Python exits with 1 after an uncaught exception, a shell
#: with 126 and more for commands that it cannot start and for signals.
CHOSEN = range(2, 126)
#: Marks of how many ranks print to a log.
WORLDS = ("world", "lightning-world")
#: The exit status of a process of which nobody reports one.
UNKNOWN = 0


def said_nothing(
    failure: Failure | None,
    scans: Sequence[Scan],
    echoes: Sequence[Candidate],
    errors: Sequence[Error],
) -> Failure | None:
    """The process that exited first, if only other processes printed anything about it.

    Args:
        failure: the first failure, as reported by torchrun.
        scans: the results for the logs.
        echoes: conditions that the logs show, none of them a cause.
        errors: exceptions of all ranks.
    """
    if not echoes:
        return None
    if failure is None:
        return _chose_its_status(scans, echoes, errors) or _vanished(scans, echoes, errors)
    if failure.code <= 0 or any(error.rank == failure.rank for error in errors):
        return None
    others = all(hit.rank not in {None, failure.rank} for one in echoes for hit in one.hits)
    return failure if others else None


def who_ended(failure: Failure) -> str:
    """The process, as far as the logs identify it."""
    return "a process" if failure.rank is None else f"rank {failure.rank}"


def how_it_ended(failure: Failure, marks: Mapping[str, tuple[int, str, int]]) -> str:
    """What is known of the end of a process that printed nothing about it."""
    if failure.code != UNKNOWN:
        how = f"{who_ended(failure)} ended first, with exit status {failure.code}, and its lines do"
        how += " not show why"
    elif ray_deaths.has_died(marks):
        how = ray_deaths.told(marks)
    else:
        how = f"{who_ended(failure)} ended without a message, so the log does not show why"
    return f"{how}; what the other ranks report follows from that"


def _chose_its_status(
    scans: Sequence[Scan], echoes: Sequence[Candidate], errors: Sequence[Error]
) -> Failure | None:
    """The first failure from a launcher that reports no more than an exit status."""
    if any(one.level is not Level.HINT for one in echoes) or not all(map(is_echo, errors)):
        return None
    for scan in scans:
        for name in REPORTS:
            number, text = scan.marks.get(name, (0, ""))
            found = EXITED.search(text)
            if found is None or int(found["code"]) not in CHOSEN:
                continue
            spoke = {hit.rank for one in echoes for hit in one.hits}
            spoke |= {error.rank for error in errors}
            rank = _the_other(scan, spoke)
            return Failure(number, text, rank, int(found["code"]), "")
    return None


def _vanished(
    scans: Sequence[Scan], echoes: Sequence[Candidate], errors: Sequence[Error]
) -> Failure | None:
    """The process that ended without any report, if all others report that it is gone.

    A network that fails is reported from both of its ends.
    """
    if any(one.level is not Level.HINT for one in echoes) or not all(map(is_echo, errors)):
        return None
    spoke = {hit.rank for one in echoes for hit in one.hits} | {error.rank for error in errors}
    for scan in scans:
        rank = _the_other(scan, spoke)
        if rank is not None or ray_deaths.has_died(scan.marks):
            hit = echoes[0].hits[0]
            return Failure(hit.line, hit.text, rank, UNKNOWN, "")
    return None


def _the_other(scan: Scan, spoke: set[int | None]) -> int | None:
    """The one rank of a job that did not report a lost peer; None if there are several."""
    name = next((one for one in WORLDS if one in scan.marks), "")
    if None in spoke or not name:
        return None
    world = mark_pattern(name).search(scan.marks[name][1])
    left = set(range(int(world["n"]))) - spoke if world else set()
    return left.pop() if len(left) == 1 else None
