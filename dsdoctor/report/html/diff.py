"""`diff --format html`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from dsdoctor.model.report import Report, Verdict
from dsdoctor.report.changes import worst_first
from dsdoctor.report.html.page import render

#: Longer values are folded ...
LONGEST = 300
#: ... and still longer ones cut off, as are names.
MOST_CHARACTERS = 10_000
#: Facts of a page, and values that it shows of one fact and of all: a browser has to lay them out.
MOST_FACTS = 200
MOST_OF_ONE = 500
MOST_VALUES = 2_000
STATUSES = {"ok", "skip", "warn", "unknown", "crash", "fail"}
WORDS = {Verdict.HEALTHY: "healthy", Verdict.FAULTY: "faulty", Verdict.UNKNOWN: "inconclusive"}


def _words(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _cut(text, MOST_CHARACTERS)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"


def page(
    names: tuple[str, str],
    reports: tuple[Report, Report],
    facts: Sequence[tuple[str, Any, Any]],
    changes: Sequence[tuple[str, str, str]],
) -> str:
    """The page.

    Args:
        names: names of the two snapshots.
        reports: the report on each.
        facts: facts that differ: name, before, after; a description if one side has no value.
        changes: conditions whose worst status changed: name, before, after.

    Raises:
        UsageError: the extra `html` is not installed.
    """
    changed = {name for name, _, _ in changes}
    messages: dict[tuple[str, str], str] = {}
    for finding in reports[1].findings:
        messages.setdefault((finding.condition, finding.status.value), finding.message)
    equal: dict[str, list[str]] = {}
    for finding in reports[1].findings:  # worst first, so the first status of a name is its worst
        if finding.condition not in changed:
            changed.add(finding.condition)
            equal.setdefault(finding.status.value, []).append(finding.condition)
    rows = [
        (name, before, after, messages.get((name, after), ""))
        for name, before, after in worst_first(changes)
    ]
    by_fact: dict[str, list[tuple[str, str, str]]] = {}
    counts: Counter[str] = Counter()
    shown = 0
    for name, before, after in facts:
        head = _cut(name.partition(".")[0].partition("[")[0], LONGEST)
        counts[head] += 1
        if head not in by_fact and len(by_fact) < MOST_FACTS:
            by_fact[head] = []
        if head in by_fact and shown < MOST_VALUES and counts[head] <= MOST_OF_ONE:
            by_fact[head].append((_cut(name, LONGEST), _words(before), _words(after)))
            shown += 1
    return render(
        "diff.html.j2",
        title="dsdoctor diff",
        names=names,
        verdicts=[(report.verdict.value, WORDS[report.verdict]) for report in reports],
        hosts=[report.host for report in reports],
        changes=rows,
        statuses=STATUSES,
        facts=by_fact,
        counts=counts,
        count=len(facts),
        left_out=len(facts) - shown,
        equal=equal,
        longest=LONGEST,
    )
