"""Deaths that a launcher reports, of processes that only followed the first failure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from dsdoctor.logs.echoes import is_echo
from dsdoctor.logs.errors import Error
from dsdoctor.logs.hits import Failure, Hit, Scan
from dsdoctor.logs.launcher_lines import EXITED, SIGNALLED
from dsdoctor.logs.outlived import covers
from dsdoctor.logs.silent import REPORTS

#: A signal in torchrun's report.
ENDED = re.compile(r"^\s*(?:exitcode\s*: -\d|traceback : Signal \d)")


def without_late_reports(
    hits: list[Hit], scans: Sequence[Scan], errors: Sequence[Error], failure: Failure | None
) -> list[Hit]:
    """The hits without signals that a launcher reports of processes that died later.

    A process that exits on its own prints why, and its launcher reports that first. A process that
    dies of a signal afterwards, on another node or during shutdown, has lost its peer. The same
    holds for one that dies of a signal after a rank raised an exception that a condition explains:
    its destructors may crash after a CUDA error.

    Args:
        hits: what was found in the logs.
        scans: the results for the logs.
        errors: the exceptions that count.
        failure: what the launcher reports as the first failure.
    """
    if failure is not None:
        hits = [hit for hit in hits if not _ended_by_agent(hit, failure)]
    reports = [hit for hit in hits if SIGNALLED.search(hit.text)]
    follows = {name for hit in reports for name in hit.known.signature.masks}
    rest = [hit for hit in hits if hit not in reports and hit.known.condition not in follows]
    ends = {
        source: min(_ends(source, rest, scans, errors))
        for source in {one.source for one in reports}
    }
    late = {id(hit) for hit in reports if hit.line > ends[hit.source]}
    kept = [hit for hit in hits if id(hit) not in late]
    explained = errors or any(not hit.known.signature.echo for hit in kept)
    return kept if late and explained else hits


def _ends(
    source: int, hits: Sequence[Hit], scans: Sequence[Scan], errors: Sequence[Error]
) -> Iterator[float]:
    """Lines of a log at which a process is known to have ended for a reason of its own."""
    yield math.inf
    marks = scans[source].marks
    number, text = min((marks[name] for name in REPORTS if name in marks), default=(0, ""))
    if EXITED.search(text):
        yield number
    for error in errors:
        if error.source == source and error.traced and error.rank is not None:
            speaks = any(
                not hit.known.signature.echo and not hit.warned and covers(hit, error)
                for hit in hits
            )
            if speaks and not is_echo(error):
                yield error.line


def _ended_by_agent(hit: Hit, failure: Failure) -> bool:
    """Whether torchrun reports a rank that it ended itself, after the first failure.

    The agent sends SIGTERM, and SIGKILL to processes that have not ended 30 seconds later (torch,
    distributed/elastic/multiprocessing/api.py). It lists those ranks above the first failure.
    """
    return failure.code > 0 and hit.line < failure.line and bool(ENDED.search(hit.text))
