"""From a verdict on the machine to pass or block. Pure, standard library only."""

from __future__ import annotations

import dataclasses
from typing import Any

#: Begins every reason that a scheduler receives: only drains with this prefix are undone.
PREFIX = "dsdoctor:"
#: Families whose conditions do not affect a job without GPUs.
GPU_FAMILIES = ("driver", "gpu", "topology", "nccl", "cuda", "torch")
#: Order of faults: those of the node, which no job can fix, before those of the job or of its
#: environment; and those of the device before those of software, which may follow from them.
_SCOPES = ("node", "job", "user-env")
_FAMILIES = ("gpu", "driver", "topology")


@dataclasses.dataclass(frozen=True)
class Fault:
    """A confirmed failure: what blocks a job.

    Attributes:
        id, condition: which.
        message: with the measured value.
        hint: how to fix it.
        scope: who can fix it.
    """

    id: str
    condition: str
    message: str
    hint: str = ""
    scope: str = "node"

    @property
    def line(self) -> str:
        """As a scheduler receives it."""
        return f"{self.id} {self.condition}: {self.message}"


@dataclasses.dataclass(frozen=True)
class Decision:
    """What a hook decided.

    Attributes:
        block: the job must not start here.
        verdict: `healthy`, `faulty` or `unknown`.
        cause: why the check was inconclusive, as one word; None if it was not.
        detail: the same as text.
        faults: confirmed failures.
        warnings: what else is worth reporting.
        notes: of the warnings, those about the job that has ended (`slurm-epilog`).
        counts: findings by status.
        reused: the verdict was made for an earlier hook.
        would_block: it would block without --dry-run.
        problems: mistakes in the configuration that the worker found.
    """

    block: bool = False
    verdict: str = "unknown"
    cause: str | None = None
    detail: str = ""
    faults: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()
    notes: tuple[Fault, ...] = ()
    counts: dict[str, int] = dataclasses.field(default_factory=dict)
    reused: bool = False
    would_block: bool = False
    problems: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """One line for a scheduler, with `PREFIX`."""
        if self.faults:
            more = f" (and {len(self.faults) - 1} more)" if len(self.faults) > 1 else ""
            return f"{PREFIX} {self.faults[0].line}{more}"
        if self.cause is not None:
            return f"{PREFIX} inconclusive ({self.cause}): {self.detail}"
        return f"{PREFIX} ok"


def _rank(row: dict[str, Any]) -> tuple[int, int]:
    """Sort key of a finding; those of equal rank keep the order of the report."""
    scope, family = row.get("scope", "node"), row.get("family")
    return (
        _SCOPES.index(scope) if scope in _SCOPES else len(_SCOPES),
        _FAMILIES.index(family) if family in _FAMILIES else len(_FAMILIES),
    )


def _fault(row: dict[str, Any]) -> Fault:
    return Fault(
        id=str(row.get("id", "")),
        condition=str(row.get("condition", "")),
        message=str(row.get("message", "")),
        hint=str(row.get("hint", "")),
        scope=str(row.get("scope", "node")),
    )


def faults_of(judged: dict[str, Any], *, wants_gpu: bool) -> tuple[Fault, ...]:
    """Confirmed failures, the decisive one first; without GPU families if the job uses no GPU."""
    return tuple(
        _fault(row)
        for row in sorted(judged.get("findings", ()), key=_rank)
        if row.get("status") == "fail"
        and row.get("confirmed")
        and (wants_gpu or row.get("family") not in GPU_FAMILIES)
    )


def warnings_of(judged: dict[str, Any], *, wants_gpu: bool = True) -> tuple[Fault, ...]:
    """Warnings and unconfirmed failures; without GPU families if the job uses no GPU."""
    return tuple(
        _fault(row)
        for row in judged.get("findings", ())
        if (row.get("status") == "warn" or (row.get("status") == "fail" and not row["confirmed"]))
        and (wants_gpu or row.get("family") not in GPU_FAMILIES)
    )


def _of_job(judged: dict[str, Any]) -> dict[str, Any]:
    return {"findings": [row for row in judged.get("findings", ()) if row.get("of_job")]}


def decide(
    judged: dict[str, Any],
    *,
    wants_gpu: bool = True,
    fail_closed: bool = False,
    dry_run: bool = False,
    reused: bool = False,
) -> Decision:
    """The decision on a machine that was judged.

    Only a confirmed failure blocks. One that rests on a timeout or on a broken answer is as unknown
    as what could not be read at all, because dsdoctor itself may be at fault.
    """
    faults = faults_of(judged, wants_gpu=wants_gpu)
    unsure = [str(text) for text in judged.get("unsure", ())] if wants_gpu else []
    base = Decision(
        counts=dict(judged.get("counts", {})),
        reused=reused,
        warnings=warnings_of(judged, wants_gpu=wants_gpu),
        notes=warnings_of(_of_job(judged)),
        problems=tuple(str(text) for text in judged.get("problems", ())),
    )
    if faults:
        return dataclasses.replace(
            base, block=not dry_run, would_block=dry_run, verdict="faulty", faults=faults
        )
    if unsure:
        found = unknown(
            str(judged.get("unsure_cause", "unread")),
            "; ".join(unsure)[:300],
            fail_closed=fail_closed,
            dry_run=dry_run,
        )
        return dataclasses.replace(
            base,
            block=found.block,
            would_block=found.would_block,
            cause=found.cause,
            detail=found.detail,
        )
    return dataclasses.replace(base, verdict="healthy")


def unknown(
    cause: str, detail: str, *, fail_closed: bool = False, dry_run: bool = False
) -> Decision:
    """The decision for an inconclusive check: pass, unless `fail_closed`."""
    return Decision(
        block=fail_closed and not dry_run,
        would_block=fail_closed and dry_run,
        cause=cause,
        detail=" ".join(detail.split()),
    )
