"""Confirms or refutes the causes of a log with the checks of a machine: a pure function."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from dsdoctor.model.diagnosis import Cause, Diagnosis, Now
from dsdoctor.model.finding import Finding, Status
from dsdoctor.packs.registry import Registry, Unit

#: Confidence of a cause that the machine confirms.
CERTAIN = 0.99


def units_for(diagnosis: Diagnosis, registry: Registry) -> tuple[Unit, ...]:
    """Checks that can confirm or refute the causes: their own, and those that predict them."""
    names = {cause.condition for cause in diagnosis.causes}
    return tuple(
        unit
        for unit in registry
        if unit.check is not None
        and (
            unit.condition.name in names
            or names.intersection(unit.condition.leads_to)
            or names.intersection(unit.condition.narrower)
        )
    )


def combine(
    diagnosis: Diagnosis, findings: Iterable[Finding], registry: Registry, where: str
) -> Diagnosis:
    """Confirms or refutes causes.

    Args:
        diagnosis: of the logs.
        findings: of the checks that `units_for` returns, on the machine.
        registry: knows which condition leads to which.
        where: the machine and when it was examined, as shown to the user.

    Returns:
        The diagnosis with `now` set on every cause. Refuted causes come last: they may explain the
        failure at the time, but no longer apply.
    """
    rows = list(findings)
    causes = [_with_finding(cause, rows, registry, where) for cause in diagnosis.causes]
    causes.sort(key=lambda cause: cause.now is not None and cause.now.status == "refuted")
    if not causes:
        return diagnosis
    return msgspec.structs.replace(diagnosis, causes=tuple(causes), summary=causes[0].message)


def _with_finding(
    cause: Cause, findings: Sequence[Finding], registry: Registry, where: str
) -> Cause:
    name = cause.condition
    own = [finding for finding in findings if finding.condition == name]
    troubles = [finding for finding in own if finding.status in (Status.FAIL, Status.WARN)]
    if troubles:
        return _confirmed(cause, troubles[0].message, where)
    for finding in findings:
        unit = registry.find(finding.condition)
        if (
            unit is not None
            and finding.status in (Status.FAIL, Status.WARN)
            and name in unit.condition.leads_to
        ):
            return _confirmed(cause, f"{finding.message} (`{finding.condition}`)", where)
    if own and all(finding.status is Status.OK for finding in own):
        message = (
            f"`check` no longer finds this on {where}: it has been fixed since, "
            "or the log is from another machine or environment"
        )
        return msgspec.structs.replace(cause, now=Now(status="refuted", message=message))
    reasons = [finding.message for finding in own if finding.message]
    if reasons:
        message = f"{where} is inconclusive: {reasons[0]}"
    else:
        message = "it shows only in logs; no check looks for it on a machine"
    return msgspec.structs.replace(cause, now=Now(status="unknown", message=message))


def _confirmed(cause: Cause, message: str, where: str) -> Cause:
    return msgspec.structs.replace(
        cause,
        confidence=CERTAIN,
        now=Now(status="confirmed", message=f"still present on {where}: {message}"),
    )
