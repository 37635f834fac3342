"""A finding: what one check says about one thing."""

from __future__ import annotations

import enum
from typing import Any

import msgspec

from dsdoctor.model.facts.run import Scope


class Status(enum.Enum):
    """The six words (docs/architecture.md), from best to worst."""

    OK = "ok"
    SKIP = "skip"
    WARN = "warn"
    UNKNOWN = "unknown"
    CRASH = "crash"
    FAIL = "fail"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One statement of one check.

    Attributes:
        status: one of the six words.
        message: what is, with the measured value, then what was expected.
        effect: what it will do to the run.
        hint: an imperative that the reader can carry out.
        evidence: every number of the message, and what it was read from.
        condition: name of the condition (set by the engine).
        id: its id (set by the engine).
        fixes: names of fixes; the engine sets those of the condition, unless the check has chosen
            from them (`fixed_by`).
        scope: who can fix it; the engine sets that of the condition, unless the check has found
            that it is the job's (`of_job`).
        formerly: earlier names of the condition (set by the engine); left out of JSON without any.
        by_hand: the condition's fixes are not possible here, so none is named; left out of JSON
            otherwise.
    """

    status: Status
    message: str
    effect: str = ""
    hint: str = ""
    evidence: dict[str, Any] = {}
    condition: str = ""
    id: str = ""
    fixes: tuple[str, ...] = ()
    scope: Scope = Scope.NODE
    formerly: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    by_hand: bool | msgspec.UnsetType = msgspec.UNSET


def ok(message: str = "", **evidence: Any) -> Finding:
    """Everything needed was read, and it is good."""
    return Finding(status=Status.OK, message=message, evidence=evidence)


def warn(message: str, *, effect: str = "", hint: str = "", **evidence: Any) -> Finding:
    """The run will work, but worse than it could, or by luck."""
    return Finding(status=Status.WARN, message=message, effect=effect, hint=hint, evidence=evidence)


def fail(message: str, *, effect: str = "", hint: str = "", **evidence: Any) -> Finding:
    """The run will not work."""
    return Finding(status=Status.FAIL, message=message, effect=effect, hint=hint, evidence=evidence)


def without_fix(finding: Finding) -> Finding:
    """A finding whose condition has a fix that is not possible here."""
    return msgspec.structs.replace(finding, by_hand=True)


def fixed_by(finding: Finding, *names: str) -> Finding:
    """A finding that only these of its condition's fixes can solve, the best first."""
    return msgspec.structs.replace(finding, fixes=names)


def of_job(finding: Finding) -> Finding:
    """A finding that a condition of the node has here because of what the job asked for."""
    return msgspec.structs.replace(finding, scope=Scope.JOB)


def skip(reason: str, **evidence: Any) -> Finding:
    """The condition does not apply to this run, and why."""
    return Finding(status=Status.SKIP, message=reason, evidence=evidence)
