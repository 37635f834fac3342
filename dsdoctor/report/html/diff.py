"""`diff --format html`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dsdoctor.model.report import Report, Verdict
from dsdoctor.report.html.page import render

#: Longer values are folded.
LONGEST = 300
STATUSES = {"ok", "skip", "warn", "unknown", "crash", "fail"}
WORDS = {Verdict.HEALTHY: "healthy", Verdict.FAULTY: "faulty", Verdict.UNKNOWN: "inconclusive"}


def _words(value: Any) -> str:
    if value is None:
        return "missing"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def page(
    names: tuple[str, str],
    reports: tuple[Report, Report],
    facts: Sequence[tuple[str, Any, Any]],
    changes: Sequence[tuple[str, str, str]],
) -> str:
    """The page.

    Args:
        names: of the two snapshots.
        reports: what was found in each.
        facts: facts that differ: name, before, after.
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
        (name, before, after, messages.get((name, after), "")) for name, before, after in changes
    ]
    by_fact: dict[str, list[tuple[str, str, str]]] = {}
    for name, before, after in facts:
        head = name.partition(".")[0].partition("[")[0]
        by_fact.setdefault(head, []).append((name, _words(before), _words(after)))
    return render(
        "diff.html.j2",
        title="dsdoctor diff",
        names=names,
        verdicts=[(report.verdict.value, WORDS[report.verdict]) for report in reports],
        hosts=[report.host for report in reports],
        changes=rows,
        statuses=STATUSES,
        facts=by_fact,
        count=len(facts),
        equal=equal,
        longest=LONGEST,
    )
