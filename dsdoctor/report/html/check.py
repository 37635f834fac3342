"""`check --format html`."""

from __future__ import annotations

import functools
import json
from typing import Any

from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.gpu import Gpus, GpuTopology
from dsdoctor.model.facts.pci import PciTree
from dsdoctor.model.facts.python import DeepSpeedInstall, TorchBuild
from dsdoctor.model.facts.run import Scope
from dsdoctor.model.finding import Finding, Status
from dsdoctor.model.matrix import Matrix
from dsdoctor.model.report import Report
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.report import heading, text, topology
from dsdoctor.report.alike import by_gpu, one_for_all, stated_lines
from dsdoctor.report.html.machine import picture
from dsdoctor.report.html.page import render

#: Who can act on a condition of a scope.
FIXED_BY = {
    Scope.NODE: "the node's administrator",
    Scope.USER_ENV: "the owner of the Python environment",
    Scope.JOB: "the author of the job",
}
QUIET = (Status.OK, Status.SKIP)
#: Why a fact is missing, as the head of a list.
WHY = {
    Why.ABSENT: "Not present on this machine",
    Why.DENIED: "Not permitted",
    Why.NOT_ASKED: "Not needed, or not requested",
    Why.UNSUPPORTED: "Not reported by this hardware or driver",
    Why.TIMEOUT: "Timed out",
    Why.BROKEN: "Unreadable",
}


def rows(values: dict[str, Any]) -> list[tuple[str, str]]:
    """Evidence as text; values that are not strings as JSON."""
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in values.items()
        if name != "stated_at"
    ]


def _quiet(report: Report, status: Status) -> list[Finding]:
    """The findings with a status, of equal ones only the first."""
    seen: dict[tuple[str, str], Finding] = {}
    for finding in report.findings:
        if finding.status is status:
            seen.setdefault((finding.condition, finding.message), finding)
    return list(seen.values())


def page(report: Report, snapshot: Snapshot) -> str:
    """The page.

    Args:
        report: the report.
        snapshot: the facts, for the picture of the machine and the list of missing ones.

    Raises:
        UsageError: the extra `html` is not installed.
    """
    machine = picture(
        snapshot.get(Gpus),
        snapshot.get(GpuTopology),
        snapshot.get(PciTree),
        snapshot.run,
        by_gpu(report.findings),
    )
    missing: dict[str, list[tuple[str, str]]] = {}
    for name, why in sorted(snapshot.missing.items()):
        missing.setdefault(WHY.get(why.why, why.why.value), []).append((name, why.detail))
    origin = report.origin if isinstance(report.origin, str) else ""
    name = report.host or origin or "unknown host"
    matrix = report.topology if isinstance(report.topology, Matrix) else None
    return render(
        "check.html.j2",
        title=f"{report.verdict.value} · {name} · dsdoctor check",
        report=report,
        patient=report.patient,
        gpus=heading.gpu_words(report),
        torch=heading.package_words(report, TorchBuild),
        deepspeed=heading.package_words(report, DeepSpeedInstall),
        counted=[
            (status.value, report.counts.get(status.value, 0), one, many)
            for status, one, many in text.COUNTED
        ],
        troubles=one_for_all(f for f in report.findings if f.status not in QUIET),
        good=_quiet(report, Status.OK),
        skipped=_quiet(report, Status.SKIP),
        words={status: word.upper() for status, word in text.WORDS.items()},
        fixed_by=FIXED_BY,
        fix_command=lambda report, found: functools.partial(text.fix_command, report, found),
        rows=rows,
        stated_lines=stated_lines,
        stated=list(heading.items(report))[1:] if isinstance(report.judged, int) else [],
        origin=origin,
        judged=report.judged if isinstance(report.judged, int) else None,
        conditions=report.conditions,
        machine=machine,
        matrix=matrix,
        legend=topology.LEGEND,
        missing=missing,
        created=snapshot.created,
    )
