"""Which findings the fix `repair-ds-config` can act on; all others need a decision of the reader.

Checks and the fix ask the same functions, so that no fix is offered that then refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dsdoctor.api import DsConfig, Finding, Status, without_fix

#: Other spellings of the JSON literals.
_LITERALS = {"true": True, "false": False, "null": None, "none": None}


def offered(config: DsConfig, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Findings of one check, without their fix where it would change nothing."""
    for finding in findings:
        certain = finding.status not in (Status.WARN, Status.FAIL) or is_certain(config, finding)
        yield finding if certain else without_fix(finding)


def is_certain(config: DsConfig, finding: Finding) -> bool:
    """Whether the finding leaves one way to write what was meant."""
    evidence = finding.evidence
    if evidence.get("line") is None:
        return False
    if "nearest" in evidence or "option" in evidence:  # batch sizes
        return True
    if "key" in evidence and ("meant" in evidence or "removed_since" in evidence):
        return is_renamed(config, finding) or is_removed(finding)
    if "meant" in evidence:  # an optimizer
        return bool(evidence["meant"])
    return plain_value(evidence.get("value")) is not None


def is_renamed(config: DsConfig, finding: Finding) -> bool:
    """An unknown key whose right name is known, and is not there as well."""
    meant = finding.evidence.get("meant")
    moves = meant in (config.parsed or {}) or isinstance(config.get(str(meant)), dict)
    return bool(meant) and not moves


def is_removed(finding: Finding) -> bool:
    """An unknown key that DeepSpeed would reject under any name."""
    key, meant = str(finding.evidence.get("key")), finding.evidence.get("meant")
    params = key.startswith(("optimizer.params.", "scheduler.params."))
    return bool(finding.evidence.get("removed_since")) or (
        meant is None and "." in key and not params
    )


def plain_value(value: object) -> tuple[object] | None:
    """The literal or number that a string stands for, in a tuple; None if it is something else.

    >>> plain_value("True,"), plain_value("none"), plain_value("1e-5"), plain_value("cpu")
    ((True,), (None,), (1e-05,), None)
    """
    if not isinstance(value, str):
        return None
    word = value.rstrip(",} ").strip().strip("\"'")
    if word.lower() in _LITERALS:
        return (_LITERALS[word.lower()],)
    try:
        number = float(word)
    except ValueError:
        return None
    return (int(number) if number.is_integer() else number,)
