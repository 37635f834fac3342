"""What changed between two snapshots: verdicts, versions and settings, facts. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from dsdoctor.fleet.traits import traits_of, why_unknown
from dsdoctor.model.facts.base import Missing
from dsdoctor.model.facts.python import Packages
from dsdoctor.model.finding import Finding, Status
from dsdoctor.model.report import Report
from dsdoctor.model.snapshot import NOT_REPORTED, Snapshot

#: Name, value before, value after.
Change = tuple[str, Any, Any]


def verdict_changes(old: Report, new: Report) -> list[tuple[str, str, str]]:
    """Conditions whose worst status changed; `-` where a report does not contain one."""
    before, after = _worst_statuses(old.findings), _worst_statuses(new.findings)
    return [
        (name, before.get(name, "-"), after.get(name, "-"))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def setting_changes(before: Snapshot, after: Snapshot) -> list[tuple[str, str, str]]:
    """Versions and settings that differ: traits of a machine first, then packages."""
    left, right = traits_of(before), traits_of(after)
    rows = [
        (name, old, new)
        for name in dict.fromkeys([*left, *right])
        if (old := left.get(name) or why_unknown(before, name))
        != (new := right.get(name) or why_unknown(after, name))
    ]
    return [*rows, *_package_changes(before, after, {name.lower() for name in (*left, *right)})]


def _package_changes(
    before: Snapshot, after: Snapshot, traits: set[str]
) -> list[tuple[str, str, str]]:
    """Packages whose versions differ, first those whose requirements were recorded."""
    left, right = before.get(Packages), after.get(Packages)
    if isinstance(left, Missing) or isinstance(right, Missing):
        old, new = _package_list(left), _package_list(right)
        return [("packages", old, new)] if old != new else []
    rows = [
        (name, left.version(name) or "not installed", right.version(name) or "not installed")
        for name in left.packages.keys() | right.packages.keys()
        if name.lower() not in traits and left.version(name) != right.version(name)
    ]
    known = left.requires.keys() | right.requires.keys()
    return sorted(rows, key=lambda row: (row[0] not in known, row[0]))


def _package_list(packages: Packages | Missing) -> str:
    if isinstance(packages, Missing):
        return f"not read: {packages.detail}"
    return f"{len(packages.packages)} installed"


def in_words(facts: Iterable[Change], before: Snapshot, after: Snapshot) -> list[Change]:
    """Facts that differ; if one side has no value, the reason takes its place.

    Args:
        facts: from `model.snapshot.differences`, in which None means no value.
        before: the first snapshot.
        after: the second one.
    """
    return [
        (
            name,
            _absence(before, name) if old is None else old,
            _absence(after, name) if new is None else new,
        )
        for name, old, new in facts
    ]


def _absence(snapshot: Snapshot, name: str) -> str:
    key = re.split(r"[.\[]", name, maxsplit=1)[0]
    if key in snapshot.missing:
        return f"not read: {snapshot.missing[key].detail}"
    if key not in snapshot.facts:
        return f"not read: {NOT_REPORTED if snapshot.pasted else f'`{key}` was not collected'}"
    return "read" if name == key else "no value"


def _worst_statuses(findings: Sequence[Finding]) -> dict[str, str]:
    order = list(Status)
    worst: dict[str, Status] = {}
    for finding in findings:
        known = worst.get(finding.condition, Status.OK)
        worst[finding.condition] = max(known, finding.status, key=order.index)
    return {name: status.value for name, status in worst.items()}
