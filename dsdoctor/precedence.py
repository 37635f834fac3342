"""Drops findings that others explain: a narrower condition, or one that hides a fact."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

import msgspec

from dsdoctor.model.condition import Signature
from dsdoctor.model.finding import Finding, Status
from dsdoctor.packs.registry import Registry, Unit


def narrower_of(finding: Finding, unit: Unit, registry: Registry) -> tuple[Unit, str] | None:
    """The narrower condition whose signature matches the error text of a problem, and its hint.

    Returns:
        None if there is none. The hint is that of the signature, or else of the condition.
    """
    text = str(finding.evidence.get("error_text", ""))
    if finding.status not in (Status.FAIL, Status.WARN) or not text:
        return None
    for name in unit.condition.narrower:
        narrower = registry.find(name)
        if narrower and (hint := _recognized(narrower, text)) is not None:
            return narrower, hint
    return None


def _recognized(unit: Unit, text: str) -> str | None:
    """The hint of the first signature of a condition that matches a line; None = none does."""
    for signature in unit.signatures:
        if not _fits(signature, text):
            continue
        for line in text.splitlines():
            found = re.search(signature.pattern, line)
            if found:
                return signature.hint_with(found.groupdict("?")) or unit.hint
    return None


def _fits(signature: Signature, text: str) -> bool:
    """Whether the text has what a signature wants around its line, and nothing that refutes it.

    It is a few lines long, so that all of them are near.
    """
    wanted = (signature.near, signature.requires)
    refuting = (*signature.not_near, *signature.unless)
    return not any(one in text for one in refuting) and all(
        not literals or any(one in text for one in literals) for literals in wanted
    )


def without_repeated(findings: list[Finding], narrowed: AbstractSet[int]) -> list[Finding]:
    """Drops a failure that was filed under a narrower condition whose own check failed too.

    Args:
        findings: all of them.
        narrowed: positions of those that come from a wider condition's check.
    """
    own = {
        finding.condition
        for place, finding in enumerate(findings)
        if place not in narrowed and finding.status is Status.FAIL
    }
    return [
        finding
        for place, finding in enumerate(findings)
        if place not in narrowed or finding.condition not in own
    ]


def without_wider(findings: list[Finding], registry: Registry) -> list[Finding]:
    """Drops failures and warnings of a condition if a narrower condition failed as well.

    If both are about keys of a config, only those about the same key are dropped.
    """
    failed: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.status is Status.FAIL:
            failed.setdefault(finding.condition, []).append(finding)
    kept: list[Finding] = []
    for finding in findings:
        unit = registry.find(finding.condition)
        narrower = [
            one
            for name in (unit.condition.narrower if unit else ())
            for one in failed.get(name, ())
        ]
        bad = finding.status in (Status.FAIL, Status.WARN)
        if bad and any(_overlap(_keys(finding), _keys(one)) for one in narrower):
            continue
        kept.append(finding)
    return kept


def without_blinded(findings: list[Finding], registry: Registry) -> list[Finding]:
    """Skips findings that are unknown only because a condition that failed hides the fact.

    If NVML fails, no check of a GPU can be judged: one line is enough to say why.
    """
    causes: dict[str, str] = {}
    for finding in findings:
        unit = registry.find(finding.condition) if finding.status is Status.FAIL else None
        for kind in unit.condition.blinds if unit else ():
            causes.setdefault(kind.key(), finding.condition)
    return [
        msgspec.structs.replace(
            finding,
            status=Status.SKIP,
            message=f"not judged because of `{causes[finding.evidence['fact']]}`",
        )
        if finding.status is Status.UNKNOWN and finding.evidence.get("fact") in causes
        else finding
        for finding in findings
    ]


def _keys(finding: Finding) -> set[str]:
    """Dotted keys of a config that a finding is about; may be empty."""
    several, one = finding.evidence.get("keys"), finding.evidence.get("key")
    found = {str(key) for key in several} if isinstance(several, (dict, list, tuple)) else set()
    return found | ({one} if isinstance(one, str) else set())


def _overlap(one: set[str], other: set[str]) -> bool:
    """Whether two findings may be about the same thing."""
    if not one or not other:
        return True
    return any(
        f"{a}.".startswith(f"{b}.") or f"{b}.".startswith(f"{a}.") for a in one for b in other
    )
