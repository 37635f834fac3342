"""Which of several failures came first and ended the run.

Conditions and exceptions that no condition covers compete on equal terms. What the run outlived is
not a candidate (the scan has dropped it). An echo of another rank's death is explained by any
failure that is not an echo.
"""

from __future__ import annotations

import collections
import math
import re
import signal
from collections.abc import Collection, Iterable, Mapping, Sequence

from dsdoctor.logs.after_warning import is_unrelated
from dsdoctor.logs.candidates import (
    Candidate,
    Choice,
    as_hint,
    conditions_of,
    counts,
    fell_first,
    sorted_errors,
    when,
    with_rules,
)
from dsdoctor.logs.echoes import is_echo, is_opaque, told_by
from dsdoctor.logs.errors import PYTEST, Error
from dsdoctor.logs.evidence import why_before, why_between, why_reported
from dsdoctor.logs.hits import Failure, Hit, Scan
from dsdoctor.logs.knowledge import Rule
from dsdoctor.logs.late_reports import without_late_reports
from dsdoctor.logs.launcher_lines import KILLED
from dsdoctor.logs.outlived import covers, outlived, same_rank
from dsdoctor.logs.own_requests import without_own_requests
from dsdoctor.logs.second_signals import without_second_signals
from dsdoctor.logs.silent import said_nothing, who_ended
from dsdoctor.logs.starts import died_before, imported_anew, of_other_scripts, refused_start
from dsdoctor.logs.warning_lines import tries_again
from dsdoctor.logs.went_on import sets_up, without_idle
from dsdoctor.model.condition import Level

#: Lines before an exception that are searched for its reason: NEAR for any message, FAR for one of
#: level STRONG or more.
NEAR, FAR = 40, 400


def _only_warns(candidates: Sequence[Candidate]) -> bool:
    """Whether only warnings show the candidates: a program continues after a warning."""
    return bool(candidates) and all(hit.warned for one in candidates for hit in one.hits)


def _only_remarked(hit: Hit, errors: Sequence[Error], *, alone: bool) -> bool:
    """Whether a hint is part of a warning, and no opaque exception follows that it may explain.

    The only log that somebody shows, if it begins with the echo of a failure, shows it.
    """
    return (
        hit.warned
        and hit.known.signature.level is Level.HINT
        and not (alone and hit.known.signature.echo and hit.line == 1)
        and not any(is_opaque(e) and 0 <= e.line - hit.line <= NEAR for e in errors)
    )


def _stopped_by_hand(roots: Sequence[Candidate], errors: Sequence[Error]) -> list[Candidate]:
    """The candidates that show that someone stopped the run, if all others are warnings."""
    stops = [error for error in errors if error.type == "KeyboardInterrupt"]
    stopped = [
        one for one in roots if any(covers(hit, error) for hit in one.hits for error in stops)
    ]
    return stopped if _only_warns([one for one in roots if one not in stopped]) else []


def _follows(hit: Hit, error: Error) -> bool:
    """Whether a hit after an exception that states its own reason only echoes it."""
    return hit.known.signature.echo and hit.line > error.line and not is_opaque(error)


def _comes_late(hit: Hit, error: Error) -> bool:
    """Whether an unspecific line comes after a failed import, so it is not the reason."""
    return (
        error.type == "ModuleNotFoundError"
        and hit.known.signature.level <= Level.WEAK
        and (hit.source, hit.rank) == (error.source, error.rank)
        and hit.line > error.line
    )


def _speaks_for(hit: Hit, error: Error, writers: int) -> bool:
    """Whether a condition's line gives the reason for an exception."""
    if hit.known.signature.goes_on:
        return (hit.source, hit.line) == (error.source, error.line)
    return covers(hit, error, writers) and not _follows(hit, error) and not _comes_late(hit, error)


def _shape(error: Error) -> str:
    """An exception without its numbers, to recognize the same failure on another rank."""
    return re.sub(r"\d+", "0", f"{error.type}: {error.message}")


def _unknown(errors: Sequence[Error], hits: Sequence[Hit], rank: int | None = None) -> Error | None:
    """The first exception, echoes excluded, that no condition explains.

    Exceptions of one chain count as one: Python prints the exception that it was handling first.
    """
    covered: set[tuple[int, int | None, int]] = set()
    spoken_for: set[str] = set()
    errors = [e for e in errors if not refused_start(e, errors)]
    of_source: dict[int, list[Hit]] = collections.defaultdict(list)
    for hit in hits:
        of_source[hit.source].append(hit)
    writers: dict[int, set[int | None]] = collections.defaultdict(set)
    for error in errors:
        writers[error.source].add(error.rank)
    ends = _ends_of_texts(errors)
    for error in errors:
        count = len(writers[error.source])
        rows = [hit for hit in of_source[error.source] if hit.line < ends[error]]
        if any(_speaks_for(hit, error, count) for hit in rows):
            covered.add((error.source, error.rank, error.chain))
            spoken_for.add(_shape(error))
    # of a message that many processes print, only the first lines are kept
    covered |= {(e.source, e.rank, e.chain) for e in errors if _shape(e) in spoken_for}
    alike = {
        _shape(error) for error in errors if (error.source, error.rank, error.chain) in covered
    }
    own = [error for error in errors if not is_echo(error)]
    if rank is not None:  # the rank that failed first according to the launcher
        own.sort(key=lambda error: error.rank != rank)
    for place, error in enumerate(own):
        if (error.source, error.rank, error.chain) in covered or _shape(error) in alike:
            continue
        return told_by(error, own[place + 1 :])
    return None


def _ends_of_texts(errors: Sequence[Error]) -> dict[Error, float]:
    """The line at which an exception's text has ended: the next traceback of its rank.

    That of a failed test ends at once: what the test had printed follows it.
    """
    begun: dict[tuple[int, int | None], tuple[float, int]] = {}
    found: dict[Error, float] = {}
    for error in sorted(errors, key=lambda one: -one.line):
        line, chain = begun.get((error.source, error.rank), (math.inf, 0))
        found[error] = math.inf if chain == error.chain else line
        if PYTEST.match(error.text):
            found[error] = error.line + 1
        if error.traced and error.chain != chain:
            begun[error.source, error.rank] = error.begun, error.chain
    return found


def _explains(candidate: Candidate, error: Error, errors: Sequence[Error], *, many: bool) -> bool:
    """Whether a condition is a better answer than an exception that no condition covers."""
    hits = [hit for hit in candidate.hits if not is_unrelated(hit, error)]
    if is_opaque(error):
        return any(not _comes_late(hit, error) for hit in hits)
    errors = [one for one in errors if one.source == error.source]
    for hit in hits:
        level = hit.known.signature.level
        if level is Level.HINT and not covers(hit, error):
            continue
        if hit.source == error.source and same_rank(hit.rank, error.rank):
            reach = FAR if level >= Level.STRONG else NEAR
            if error.begun - reach <= hit.line <= error.line:
                return True
            # the exception was handled, and this hit is what ended the process
            later = PYTEST.match(error.text) is None and any(
                e.begun > error.line
                and not is_echo(e)
                and covers(hit, e)
                and not of_other_scripts(error, e)
                for e in errors
            )
            if later and level >= Level.STRONG and hit.rank == error.rank:
                return True
        elif (
            level >= Level.STRONG
            and _has_an_order(hit, error)
            and when(hit, many=many) < when(error, many=many)
        ):
            return True
    return False


def _died_before(failure: Failure | None, error: Error, echoes: Sequence[Candidate]) -> bool:
    """Whether a rank had died of an exception before anything that stops a job was reported.

    Slurm cancels what is left of a job whose script ends, so its word follows the failure.
    """
    if failure is None or failure.code <= 0 or failure.line < error.line:
        return False
    hits = [hit for one in echoes for hit in one.hits]
    # what is weaker follows from a rank that died
    told = [hit for hit in hits if hit.known.signature.level > Level.WEAK]
    return (
        bool(told)
        and all(hit.source == error.source and hit.line > error.line for hit in hits)
        and all(hit.line > failure.line for hit in told)
    )


def _has_an_order(hit: Hit, error: Error) -> bool:
    """Whether it is known which came first; without time stamps, two files have no order."""
    if hit.source == error.source or hit.rank is not None:
        return True
    return bool(hit.when and error.when)


def _masked(candidates: Sequence[Candidate]) -> dict[str, str]:
    by_name = {one.name: one for one in candidates}
    masked: dict[str, str] = {}
    for candidate in sorted(candidates, key=lambda row: -row.level):
        if candidate.name in masked:
            continue
        for victim in candidate.masks & by_name.keys():
            if sets_up(candidate, by_name[victim]) or by_name[victim].level <= candidate.level:
                masked.setdefault(victim, candidate.name)
    # of what a masked one explains, that is the explanation which explains it
    return {victim: _outermost(by, masked) for victim, by in masked.items()}


def _outermost(name: str, masked: Mapping[str, str]) -> str:
    """The one at the end of the chain; one that is masked masks nothing further, so it ends."""
    while name in masked:
        name = masked[name]
    return name


def _band(*, many: bool) -> Level:
    """The level from which on the order decides, not the level.

    It is lower if ranks have their own files, as time stamps then give the order, not lines.
    """
    return Level.LIKELY if many else Level.STRONG


def choose(
    scans: Sequence[Scan], rules: Iterable[Rule] = (), answered: Collection[Error] = ()
) -> Choice:
    """The first failure, or several that are equally likely.

    Args:
        scans: the results for the logs.
        rules: traceback rules.
        answered: exceptions that the error index knows; no rule applies to them.
    """
    many = len(scans) > 1
    failure = _first_failure(scans)
    hits, errors = _of_the_last_run(scans, rules, answered)
    hits = without_late_reports(hits, scans, errors, failure)
    error = _unknown(errors, hits, failure.rank if failure else None)
    candidates = without_idle(conditions_of(hits, many=many), error)
    roots = [one for one in candidates if not one.echo]
    echoes = [one for one in candidates if one.echo]
    if error is not None:
        better = [one for one in roots if _explains(one, error, errors, many=many)]
        if not better and (
            roots
            or not (echoes and is_opaque(error))
            or _died_before(failure, error, echoes)
            or fell_first(error, echoes, NEAR)
        ):
            only = Candidate(None, [], error, Level.LIKELY, when(error, many=many), False, set())
            decided = why_before(only, echoes)
            if failure and failure.rank == error.rank:
                decided = why_reported(failure)
            return Choice([only], {one.name: error.type for one in candidates}, decided)
        roots = better
    roots = _stopped_by_hand(roots, errors) or roots
    if not roots and (silent := said_nothing(failure, scans, echoes, errors)):
        return Choice([], {one.name: who_ended(silent) for one in echoes}, "", silent)
    return _ranked(candidates, roots or _killed(echoes, failure), failure, scans, errors)


def _of_the_last_run(
    scans: Sequence[Scan], rules: Iterable[Rule], answered: Collection[Error]
) -> tuple[list[Hit], list[Error]]:
    """The hits and exceptions that may be the first failure: nothing that the job outlived."""
    errors = sorted_errors(scans)
    alone = len(scans) == 1
    hits = [hit for hit in _counted(scans) if not _only_remarked(hit, errors, alone=alone)]
    refused = {(one.source, one.line) for one in errors if refused_start(one, errors)}
    hits = [hit for hit in hits if (hit.source, hit.line) not in refused]
    hits = without_second_signals(without_own_requests(hits, errors), errors)
    hits = with_rules(hits, scans, rules, answered)
    if len(scans) == 1 and (line := outlived(scans[0], hits, errors)):
        hits = [hit for hit in hits if hit.line > line]
        errors = [error for error in errors if error.line > line]
    if len(scans) == 1 and (line := imported_anew(errors) or died_before(scans[0], errors)):
        hits = [hit for hit in hits if hit.line >= line]
        errors = [error for error in errors if error.line >= line]
    return hits, errors


def _ranked(
    candidates: Sequence[Candidate],
    roots: Sequence[Candidate],
    failure: Failure | None,
    scans: Sequence[Scan],
    errors: Sequence[Error],
) -> Choice:
    """The conditions in order, the first failure first, and what each of the others follows from.

    Args:
        candidates: the conditions.
        roots: those of them that may be the first failure; none if all only echo one.
        failure: what the launcher reports as the first failure.
        scans: the results for the logs.
        errors: the exceptions that count.
    """
    echoes = [one for one in candidates if one.echo and one not in roots]
    decided = why_before(roots[0], echoes) if roots and echoes else ""
    explained = _masked(candidates)
    masked = {one.name: "" for one in echoes} if roots else {}
    masked = {name: explained.get(name, "") for name in {**masked, **explained}}
    contest = list(roots or echoes)
    contest = [one for one in contest if one.name not in explained] or contest
    band = _band(many=len(scans) > 1)
    contest.sort(key=lambda one: (-min(one.level, band), one.first, -one.level))
    if failure and len({one.rank for one in contest}) > 1:
        led = _led_by_the_rank(contest, failure, scans, errors)
        if led:
            decided = why_reported(failure) if led[0].rank == failure.rank else ""
            contest = led + [one for one in contest if one not in led]
    if contest:
        first = contest[0].name
        masked = {name: by or first for name, by in masked.items() if name != first}
        if not decided and len(contest) > 1:
            decided = why_between(contest[0], contest[1], band)
    return Choice(contest, masked, decided)


def _led_by_the_rank(
    contest: Sequence[Candidate],
    failure: Failure,
    scans: Sequence[Scan],
    errors: Sequence[Error],
) -> list[Candidate]:
    """What the rank shows that the launcher reports, after what no rank can have caused."""
    there = [one for one in contest if one.rank == failure.rank]
    if not there:
        return []
    return [
        one
        for one in contest
        if one not in there
        and one.first < there[0].first
        and (_is_outside(one, scans) or _is_of_the_system(one, errors))
    ] + there


def _counted(scans: Sequence[Scan]) -> list[Hit]:
    """The hits that count, given what else the logs show."""
    flags: set[str] = set().union(*(scan.flags for scan in scans)) if scans else set()
    hits = [hit for scan in scans for hit in scan.hits if counts(hit, scan, flags)]
    hits = [as_hint(hit) if tries_again(hit.text) else hit for hit in hits]
    if len(scans) < 2:  # noqa: PLR2004  # the system has a log of its own
        return hits
    from dsdoctor.logs import system_events  # noqa: PLC0415  # most often there is one log

    return system_events.without_old(hits, scans)


def _first_failure(scans: Sequence[Scan]) -> Failure | None:
    return next((failure for scan in reversed(scans) for failure in reversed(scan.failures)), None)


def _is_outside(candidate: Candidate, scans: Sequence[Scan]) -> bool:
    """Whether its first hit is in a log that no rank wrote, such as the kernel's."""
    if len(scans) < 2:  # noqa: PLR2004  # the system has a log of its own
        return False
    from dsdoctor.logs import system_events  # noqa: PLC0415  # most often there is one log

    return system_events.is_of_the_system(scans[candidate.hits[0].source])


def _is_of_the_system(candidate: Candidate, errors: Sequence[Error]) -> bool:
    """Whether a line without a rank states the cause itself, as a kernel's line in a job's log."""
    return candidate.level is Level.CERTAIN and any(
        hit.rank is None and not any(error.begun <= hit.line <= error.line for error in errors)
        for hit in candidate.hits
    )


def _killed(echoes: Sequence[Candidate], failure: Failure | None) -> list[Candidate]:
    """The condition that says that SIGKILL ended the first process to die, where all others echo.

    A rank that loses its peer raises or aborts. SIGKILL comes from outside, so it comes first.
    torchrun lists all ranks that died, and kills some itself: there the first failure decides.
    """
    if failure is not None and failure.code != -signal.SIGKILL:
        return []
    return [one for one in echoes if any(KILLED.search(hit.text) for hit in one.hits)]
