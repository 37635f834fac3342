"""From logs to the diagnosis: reads them, and judges what was found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from dsdoctor.logs import reader
from dsdoctor.logs.answers import Answer
from dsdoctor.logs.bounds import Budget
from dsdoctor.logs.endings import is_changed
from dsdoctor.logs.first import choose
from dsdoctor.logs.hits import Scan
from dsdoctor.logs.knowledge import Knowledge, Known
from dsdoctor.logs.newest_first import as_in_file
from dsdoctor.logs.presentable import presentable
from dsdoctor.logs.scan import Scanner
from dsdoctor.logs.shown import CONFIDENCE
from dsdoctor.logs.verdict import judge
from dsdoctor.model.condition import Boilerplate, Level
from dsdoctor.model.diagnosis import Cause, Diagnosis, Outcome
from dsdoctor.model.observation import Observation

if TYPE_CHECKING:
    from dsdoctor.logs.flight_recorder import Dump, Missing

#: Below this confidence, lines that a terminal changed are searched for a better cause.
SYMPTOM = 0.85


#: The last scanner, and the identities of the signatures that it was made from and keeps alive.
_LAST: list[tuple[object, Scanner]] = []


def _scanner(
    known: list[Known], boilerplate: tuple[Boilerplate, ...], own: frozenset[str]
) -> Scanner:
    """The scanner of the last call if it fits, else a new one: that takes longer than a short log.

    Compares identities; comparing a thousand signatures by value would take as long.
    """
    key = (list(map(id, known)), boilerplate, own)
    if _LAST and _LAST[0][0] == key:
        return _LAST[0][1]
    scanner = Scanner(known, boilerplate=boilerplate, own=own)
    _LAST[:] = [(key, scanner)]
    return scanner


def diagnose(
    sources: Iterable[reader.Source],
    signatures: Iterable[tuple[str, str, str, Sequence[str], object]],
    *,
    expect: Sequence[str] = (),
    answer: Answer | None = None,
    dumps: Sequence[Dump] = (),
    budget: Budget | None = None,
) -> Diagnosis:
    """Reads the logs and names the cause.

    Args:
        sources: the logs.
        signatures: what `signatures_of` returns, or only rows of signatures.
        expect: what must have been active, as for `--expect`.
        answer: looks up exceptions; by default in the error indexes of the packs.
        dumps: dumps of torch's flight recorder.
        budget: limits on what is read; None = those of `bounds`.
    """
    budget = budget or Budget()
    known = [
        item
        if isinstance(item, Known)
        else Known(item[0], item[1], item[2], tuple(item[3]), item[4])  # type: ignore[arg-type]  # a row
        for item in signatures
    ]
    more = signatures if isinstance(signatures, Knowledge) else Knowledge()
    scanner = _scanner(known, more.boilerplate, more.own)
    wanted = list(sources)
    scans = _scans(scanner, wanted, budget)
    wanted = wanted[: len(scans)]
    choice = choose(scans, more.rules)
    for index, scan in enumerate(scans):
        if choice.silent is not None:
            break
        top = choice.ranked[0] if choice.ranked else None
        if scan.document:  # sentences, not lines that a terminal broke
            continue
        if top is None or (CONFIDENCE[top.level] < SYMPTOM and is_changed(scan)):
            since = scan.step[0] if scan.step else 0
            scan.hits += [hit for hit in scanner.again(scan, index) if hit.line > since]
    answer = answer or (more.answer if more.indexes else None)
    native = more.answer_native if more.indexes else None
    found = judge(
        wanted, scans, rules=more.rules, expect=expect, answer=answer, answer_native=native,
        observed=more.observed,
    )  # fmt: skip
    if turned := {
        presentable(source.name): scan.numbers
        for source, scan in zip(wanted, scans, strict=True)
        if scan.numbers is not None
    }:
        found = as_in_file(found, turned)
    if budget.left_out:
        found = _with_gaps(found, budget)
    if not dumps:
        return found
    from dsdoctor.logs.flight_recorder import missing  # noqa: PLC0415  # dumps are rare

    late = missing(dumps)
    return found if late is None else _with_missing(found, late, more)


def _scans(scanner: Scanner, sources: Sequence[reader.Source], budget: Budget) -> list[Scan]:
    """The result for each log, as far as the budget allows."""
    scans: list[Scan] = []
    for index, source in enumerate(sources):
        why = budget.exceeded() or (
            f"the limit of {budget.files} logs" if index >= budget.files else ""
        )
        if why and index:
            budget.leave_out(f"{len(sources) - index} of {len(sources)} logs ({why})")
            break
        scan = scanner.scan(source, index, budget)
        scan.bound(budget)
        scans.append(scan)
    return scans


def _with_gaps(found: Diagnosis, budget: Budget) -> Diagnosis:
    """The diagnosis of logs that were not read completely: it never calls them clean."""
    left_out = tuple(presentable(part) for part in budget.left_out_parts())
    found = msgspec.structs.replace(found, left_out=left_out)
    if found.outcome is not Outcome.CLEAN and found.lines:
        return found
    words = "no failure in the part of the logs that was read"
    return msgspec.structs.replace(
        found, outcome=Outcome.UNRECOGNISED, summary=words, truncated=False
    )


def _with_missing(found: Diagnosis, late: Missing, known: Knowledge) -> Diagnosis:
    """The diagnosis with what the flight recorder shows: which ranks never joined."""
    name = known.observed.get(Observation.NO_COLLECTIVE)
    top = found.causes[0] if found.causes else None
    if name is None or (top is None and found.first_error is not None):
        return found
    if top is None:
        top = Cause(
            condition=name.condition, title=name.title, confidence=CONFIDENCE[Level.STRONG],
            message=name.title, hint=name.hint, fixes=tuple(name.fixes), evidence=(),
        )  # fmt: skip
    elif top.condition != name.condition:
        return found
    top = msgspec.structs.replace(top, message=f"{top.message}; {presentable(str(late))}")
    return msgspec.structs.replace(
        found,
        outcome=Outcome.CAUSE,
        summary=top.message,
        causes=(top, *found.causes[1:]),
        considered=(),
        truncated=False,
        decided_by="the flight recorder's dumps, by collective sequence number",
    )
