"""Which of several failures came first and ended the run.

Conditions and exceptions that no condition knows compete on equal terms. What the run outlived is
no candidate (the scan has dropped it). What only echoes the death of another rank is explained by
any failure that is not an echo.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import re
from collections.abc import Collection, Iterable, Sequence

from dsdoctor.logs.errors import KEPT_ERRORS, Error
from dsdoctor.logs.knowledge import Known, Rule
from dsdoctor.logs.marks import FATAL_MARKS
from dsdoctor.logs.necessary import necessary
from dsdoctor.logs.products import package_of
from dsdoctor.logs.scan import KEPT, Failure, Hit, Scan
from dsdoctor.model.condition import Level, Signature

#: Exceptions that only echo a death elsewhere.
ECHOES = re.compile(
    r"ChildFailedError|Connection closed by peer|Connection reset by peer|SignalException"
    r"|exits with return code|Broken pipe|CalledProcessError.*returned non-zero exit status"
    r"|DataLoader worker .* exited unexpectedly|KeyboardInterrupt|SystemExit: 1$"
    r"|ProcessRaisedException|ProcessExitedException|ncclRemoteError|communicator was aborted"
    r"|NCCL operation aborted|recvValue failed|Cannot recover watchdog|ActorDiedError"
    r"|WorkerCrashedError|RayTaskError|RemoteException|BrokenPipeError|EOFError$"
    r"|OSError: handle is closed",  # CPython multiprocessing/connection.py
)
#: Exceptions that speak of the machine, the libraries or the network: their reason stands
#: elsewhere in the log.
OPAQUE = frozenset(
    {
        "BrokenPipeError", "CalledProcessError", "ChildFailedError", "ConnectionError",
        "ConnectionRefusedError", "ConnectionResetError", "DistBackendError", "DistError",
        "DistNetworkError", "DistStoreError", "ImportError", "MemoryError",
        "ModuleNotFoundError", "OSError", "RendezvousConnectionError", "RendezvousTimeoutError",
        "TimeoutError", "TimeoutExpired", "BlockingIOError", "ProcessExitedException",
        "AcceleratorError", "SubprocessError", "HTTPError", "KeyboardInterrupt",
        "RendezvousError",
    },
)  # fmt: skip
OPAQUE_TEXT = re.compile(
    r"CUDA(?:[ _]driver)? error|cuda runtime error|NCCL|nccl|cuDNN|CUDNN|CUBLAS|CUSOLVER|HIP error"
    r"|can't start new thread|Resource temporarily unavailable|driver|gloo/transport"
    r"|Error building extension|Failed to import|HCCL|returned non-zero|Ninja|ninja|metadata",
)
#: Lines in front of an exception in which the reason for it is looked for, by the level that a
#: message must have.
NEAR, FAR = 40, 400
#: Lines behind an exception on which its text goes on.
MORE = 14
#: Lines below a failure after which the run is taken to have outlived it.
ALIVE = 1000
HANG_LINES = re.compile(
    r"KeyboardInterrupt|SIGTERM|SIGINT|Killing subprocess|CANCELLED|exit code|^\^C|Terminated",
)
#: A rule of a traceback has no pattern, so its hit has a signature of this kind.
BY_PLACE = {level: Signature(pattern="", examples=(), level=level) for level in Level}

Order = tuple[int, str, int, int]


@dataclasses.dataclass
class Candidate:
    """A failure that may be the first.

    Attributes:
        known: the condition; None for an exception that no condition knows.
        hits: lines that show the condition, the best first.
        error: the exception that no condition knows.
        level: how sure the best line is.
        first: when it was first seen.
        echo: it only follows from the death of another rank.
        masks: conditions that follow from it.
    """

    known: Known | None
    hits: list[Hit]
    error: Error | None
    level: Level
    first: Order
    echo: bool
    masks: set[str]

    @property
    def rank(self) -> int | None:
        """The rank on which it was first seen."""
        return self.hits[0].rank if self.hits else self.error.rank if self.error else None

    @property
    def name(self) -> str:
        """The condition, or the exception."""
        return self.known.condition if self.known else self.error.type if self.error else ""


@dataclasses.dataclass
class Choice:
    """The answer.

    Attributes:
        ranked: candidates, the most likely first; of one kind: conditions, or one exception.
        masked: conditions that are explained, to what explains them.
        decided_by: the evidence that decided, "" where there was nothing to decide.
        silent: the first failure, of a rank that printed nothing of it.
    """

    ranked: list[Candidate]
    masked: dict[str, str]
    decided_by: str = ""
    silent: Failure | None = None


def when(item: Hit | Error, *, many: bool) -> Order:
    """Sorts by time where several logs are compared, by line within one."""
    if many:
        return (0 if item.when else 1, item.when, item.line, item.source)
    return (0, "", item.source, item.line)


def is_echo(error: Error) -> bool:
    """Whether an exception only tells that another rank, or a child, has died."""
    return _orphaned(error) or bool(ECHOES.search(f"{error.type}: {error.message}".rstrip(": ")))


def _orphaned(error: Error) -> bool:
    """A child that multiprocessing was starting when its parent died."""
    return (
        bool(error.frames)
        and error.frames[-1].file.endswith("multiprocessing/spawn.py")
        and error.frames[-1].function == "_main"
        and error.type in {"EOFError", "UnpicklingError"}
    )


def is_opaque(error: Error) -> bool:
    """Whether an exception tells what failed, and not why."""
    return error.type in OPAQUE or bool(OPAQUE_TEXT.search(error.message))


def sorted_errors(scans: Sequence[Scan]) -> list[Error]:
    """All exceptions, the first in front."""
    many = len(scans) > 1
    return sorted((e for scan in scans for e in scan.errors), key=lambda e: when(e, many=many))


def ruled(
    scans: Sequence[Scan], rules: Iterable[Rule], answered: Collection[Error] = ()
) -> list[Hit]:
    """Hits of the traceback rules: functions that raise for one reason alone."""
    found: list[Hit] = []
    rules = tuple(rules)
    for error in sorted_errors(scans):
        if error in answered:
            continue
        for one in rules:
            rule = one.rule
            if rule.kinds and error.type not in rule.kinds:
                continue
            if any(
                f.function == rule.function and f.file.endswith(rule.file) for f in error.frames
            ):
                known = Known(*one[:4], BY_PLACE[rule.level])
                found.append(
                    Hit(known, error.source, error.line, error.text, error.rank, {}, error.when)
                )
    return found


def _same_rank(one: int | None, other: int | None) -> bool:
    return one is None or other is None or one == other


def _covers(hit: Hit, error: Error) -> bool:
    """Whether the words of an exception, or the lines just behind it, are the hit's."""
    return (
        hit.source == error.source
        and _same_rank(hit.rank, error.rank)
        and error.begun - 1 <= hit.line <= error.line + MORE
    )


def _follows(hit: Hit, error: Error) -> bool:
    """Whether a hit behind an exception that states its own reason only echoes its death."""
    return hit.known.signature.echo and hit.line > error.line and not is_opaque(error)


def _counts(hit: Hit, scan: Scan, flags: set[str]) -> bool:
    signature = hit.known.signature
    if any(text in flags for text in signature.unless):
        return False
    if signature.requires and not any(text in flags for text in signature.requires):
        return False
    return not signature.final or _is_final(hit, scan)


def _is_final(hit: Hit, scan: Scan) -> bool:
    literals = necessary(hit.known.signature.pattern)
    after = [text for number, text in scan.tail if number > hit.line]
    return all(any(a in text for a in literals) or HANG_LINES.search(text) for text in after)


def _conditions(hits: Iterable[Hit], *, many: bool) -> list[Candidate]:
    grouped: dict[str, list[Hit]] = collections.defaultdict(list)
    for hit in hits:
        grouped[hit.known.condition].append(hit)
    found = []
    for condition, rows in grouped.items():
        own = [hit for hit in rows if not hit.known.signature.echo] or rows
        own.sort(key=lambda hit: when(hit, many=many))
        level = max(hit.known.signature.level for hit in own)
        best = [hit for hit in own if hit.known.signature.level == level]
        chosen = {id(hit) for hit in best}  # by value, 20,000 ranks would cost minutes
        rest = sorted(
            (h for h in rows if id(h) not in chosen), key=lambda hit: when(hit, many=many)
        )
        masks = {name for hit in rows for name in hit.known.signature.masks} - {condition}
        found.append(
            Candidate(
                best[0].known, best + rest, None, level, when(best[0], many=many),
                all(hit.known.signature.echo for hit in rows), masks,
            )
        )  # fmt: skip
    return found


def _shape(error: Error) -> str:
    """An exception without its numbers: that of another rank is the same failure."""
    return re.sub(r"\d+", "0", f"{error.type}: {error.message}")


def _unknown(errors: Sequence[Error], hits: Sequence[Hit], rank: int | None = None) -> Error | None:
    """The first exception of its own that no condition speaks for.

    Exceptions of one chain count as one: Python prints what it was handling first.
    """
    covered: set[tuple[int, int | None, int]] = set()
    errors = [e for e in errors if not _refused_start(e, errors)]
    of_source: dict[int, list[Hit]] = collections.defaultdict(list)
    for hit in hits:
        of_source[hit.source].append(hit)
    for error in errors:
        if any(_covers(h, error) and not _follows(h, error) for h in of_source[error.source]):
            covered.add((error.source, error.rank, error.chain))
    alike = {
        _shape(error) for error in errors if (error.source, error.rank, error.chain) in covered
    }
    own = [error for error in errors if not is_echo(error)]
    if rank is not None:  # the rank that the launcher saw fail first
        own.sort(key=lambda error: error.rank != rank)
    for place, error in enumerate(own):
        if (error.source, error.rank, error.chain) in covered or _shape(error) in alike:
            continue
        if "Caught " in error.message and "worker process" in error.message:
            # the worker's own traceback stands right behind
            inner = (
                e for e in own[place + 1 :] if (e.rank, e.source) == (error.rank, error.source)
            )
            return next(inner, error)
        return error
    return None


def _refused_start(error: Error, errors: Sequence[Error]) -> bool:
    """Whether an option was refused at a start that another followed.

    All ranks refuse it alike, so a script that came further afterwards was started anew.
    """
    return error.type == "SystemExit" and any(
        later.source == error.source
        and later.line > error.line
        and later.traced
        and bool(later.frames)
        and not package_of(later.frames[0].file)
        and later.type != "SystemExit"
        for later in errors
    )


def _explains(candidate: Candidate, error: Error, errors: Sequence[Error], *, many: bool) -> bool:
    """Whether a condition is a better answer than an exception that no condition knows."""
    if is_opaque(error):
        return True
    errors = [one for one in errors if one.source == error.source]
    for hit in candidate.hits:
        level = hit.known.signature.level
        if level is Level.HINT and not _covers(hit, error):
            continue
        if hit.source == error.source and _same_rank(hit.rank, error.rank):
            reach = FAR if level >= Level.STRONG else NEAR
            if error.begun - reach <= hit.line <= error.line:
                return True
            # the exception was handled, and this is what ended the process
            later = any(e.begun > error.line and not is_echo(e) and _covers(hit, e) for e in errors)
            if later and level >= Level.STRONG and hit.rank == error.rank:
                return True
        elif level >= Level.STRONG and when(hit, many=many) < when(error, many=many):
            return True
    return False


def _masked(candidates: Sequence[Candidate]) -> dict[str, str]:
    by_name = {one.name: one for one in candidates}
    masked: dict[str, str] = {}
    for candidate in sorted(candidates, key=lambda row: -row.level):
        if candidate.name in masked:
            continue
        for victim in candidate.masks & by_name.keys():
            if by_name[victim].level <= candidate.level:
                masked.setdefault(victim, candidate.name)
    return masked


def choose(
    scans: Sequence[Scan], rules: Iterable[Rule] = (), answered: Collection[Error] = ()
) -> Choice:
    """The first failure, or those that are as likely.

    Args:
        scans: what was found in the logs.
        rules: traceback rules.
        answered: exceptions of which more is known than the place that raised them.
    """
    many = len(scans) > 1
    flags: set[str] = set().union(*(scan.flags for scan in scans)) if scans else set()
    hits = [hit for scan in scans for hit in scan.hits if _counts(hit, scan, flags)]
    errors = sorted_errors(scans)
    if rules:
        known_lines = {(hit.source, hit.line) for hit in hits}
        ruled_hits = ruled(scans, rules, answered)
        hits += [hit for hit in ruled_hits if (hit.source, hit.line) not in known_lines]
    if len(scans) == 1 and (line := _outlived(scans[0], hits, errors)):
        hits = [hit for hit in hits if hit.line > line]
        errors = [error for error in errors if error.line > line]
    candidates = _conditions(hits, many=many)
    failure = _first_failure(scans)
    error = _unknown(errors, hits, failure.rank if failure else None)
    roots = [one for one in candidates if not one.echo]
    echoes = [one for one in candidates if one.echo]
    masked: dict[str, str] = {}
    decided = ""
    if error is not None:
        better = [one for one in roots if _explains(one, error, errors, many=many)]
        if not better and (roots or not (echoes and is_opaque(error))):
            alone = Candidate(None, [], error, Level.LIKELY, when(error, many=many), False, set())
            decided = _order(alone, echoes)
            if failure and failure.rank == error.rank:
                decided = _reported(failure)
            return Choice([alone], {one.name: error.type for one in candidates}, decided)
        roots = better
    if failure and not roots and _is_silent(failure, echoes, errors):
        name = f"rank {failure.rank}"
        return Choice([], {one.name: name for one in echoes}, _reported(failure), failure)
    if roots:
        masked = {one.name: "" for one in echoes}
        decided = _order(roots[0], echoes) if echoes else ""
    contest = roots or echoes
    told = _masked(candidates)
    masked = {name: told.get(name, "") for name in {**masked, **told}}
    contest = [one for one in contest if one.name not in told] or contest
    band = _band(many=many)
    contest.sort(key=lambda one: (-min(one.level, band), one.first, -one.level))
    if failure and len({one.rank for one in contest}) > 1:
        there = [one for one in contest if one.rank == failure.rank]
        if there:
            contest = there + [one for one in contest if one not in there]
            decided = _reported(failure)
    if contest:
        first = contest[0].name
        masked = {name: by or first for name, by in masked.items() if name != first}
        if not decided and len(contest) > 1:
            decided = _between(contest[0], contest[1], band)
    return Choice(contest, masked, decided)


def _first_failure(scans: Sequence[Scan]) -> Failure | None:
    return next((failure for scan in reversed(scans) for failure in reversed(scan.failures)), None)


def _is_silent(failure: Failure, echoes: Sequence[Candidate], errors: Sequence[Error]) -> bool:
    """The rank that ended first exited with a status of its own, and only others say a word."""
    if failure.code <= 0 or not echoes or any(error.rank == failure.rank for error in errors):
        return False
    return all(hit.rank not in {None, failure.rank} for one in echoes for hit in one.hits)


def _reported(failure: Failure) -> str:
    return f"torchrun reports rank {failure.rank} as the first failure (exit code {failure.code})"


def _outlived(scan: Scan, hits: Sequence[Hit], errors: Sequence[Error]) -> int:
    """The line up to which the run outlived all that failed: it went on for long below it.

    What is seen behind the gap must be a failure of its own, or stand at the very end of the log,
    where a run is ended from outside: the echoes of a death may be far below it.
    """
    marks = [scan.marks[name][0] for name in FATAL_MARKS if name in scan.marks]
    own = [hit.line for hit in hits if not hit.known.signature.echo]
    own += [error.line for error in errors if not is_echo(error)]
    lines = sorted({*marks, *own, *(hit.line for hit in hits), *(error.line for error in errors)})
    gaps = [(one, other) for one, other in itertools.pairwise(lines) if other - one > ALIVE]
    if not gaps or len(errors) >= KEPT_ERRORS:
        return 0
    before, behind = gaps[-1]
    kept = collections.Counter(id(hit.known) for hit in hits if hit.line <= before)
    if max(kept.values(), default=0) >= KEPT:  # it may have gone on
        return 0
    at_the_end = bool(scan.tail) and behind >= scan.tail[0][0]
    return before if at_the_end or any(line >= behind for line in own) else 0


def _order(first: Candidate, echoes: Sequence[Candidate]) -> str:
    """In which evidence a failure precedes what follows from it."""
    if not echoes:
        return ""
    item = first.hits[0] if first.hits else first.error
    stamps = sorted(hit.when for one in echoes for hit in one.hits if hit.when)
    rank = f"rank {first.rank} " if first.rank is not None else ""
    if item is not None and item.when and stamps and item.when < stamps[0]:
        return f"{rank}failed at {item.when}, before the lines that follow from it ({stamps[0]})"
    names = ", ".join(sorted(one.name for one in echoes))
    return f"{names}: lines that the other ranks print when one has died"


def _band(*, many: bool) -> Level:
    """The level from which on not the level decides but who came first.

    Where ranks have files of their own, time stamps tell that better than lines in one file do.
    """
    return Level.LIKELY if many else Level.STRONG


def _between(first: Candidate, second: Candidate, band: Level) -> str:
    if min(first.level, band) != min(second.level, band):
        return f"its message is more certain than that of {second.name}"
    if first.first[1] and second.first[1] and first.first[1] != second.first[1]:
        return f"by time: {first.first[1]}, {second.name} at {second.first[1]}"
    return f"it stands before {second.name} in the log"
