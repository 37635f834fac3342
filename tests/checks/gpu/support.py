"""Judging with one check: its findings, and their status words."""

from __future__ import annotations

from dsdoctor.api import Check, Finding, Missing, Status, Why

NOT_SET = Missing(why=Why.ABSENT, detail="not there")


def findings(check: Check, *facts: object) -> list[Finding]:
    """All findings of a check."""
    return list(check.function(*facts))


def words(check: Check, *facts: object) -> set[str]:
    """The status words that a check says; a check that yields nothing is `ok`."""
    return {finding.status.value for finding in findings(check, *facts)} or {"ok"}


def bad(check: Check, *facts: object) -> list[Finding]:
    """The findings that are warnings or failures; what they say is looked over."""
    found = [
        finding
        for finding in findings(check, *facts)
        if finding.status in (Status.WARN, Status.FAIL)
    ]
    for finding in found:
        assert finding.message
        assert not finding.message.endswith(".")
        assert "\n" not in finding.message
        assert finding.effect
        assert finding.hint
        assert finding.evidence
    return found


def worst(check: Check, *facts: object) -> str:
    """`fail`, `warn`, or `ok` (which includes skips)."""
    said = {finding.status.value for finding in bad(check, *facts)}
    return "fail" if "fail" in said else "warn" if "warn" in said else "ok"
