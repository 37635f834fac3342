"""judge(snapshot) -> Report: pure, the same snapshot gives the same report."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import time
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from dsdoctor.model import partial
from dsdoctor.model.condition import Limits
from dsdoctor.model.facts.base import Fact, Missing, Why
from dsdoctor.model.facts.gpu import Gpus, GpuTopology, Nvml
from dsdoctor.model.facts.machine import NvidiaKernel, OsInfo
from dsdoctor.model.facts.memory import MemoryDemand
from dsdoctor.model.facts.pci import PciTree
from dsdoctor.model.facts.python import (
    DeepSpeedInstall,
    PatientChoice,
    TorchBuild,
)
from dsdoctor.model.facts.run import RunNeeds, Scope
from dsdoctor.model.finding import Finding, Status
from dsdoctor.model.matrix import build as build_matrix
from dsdoctor.model.report import PatientLine, Report, Verdict
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.model.vital import VITAL
from dsdoctor.registry import Registry, Unit, limits_for, needs

F = typing.TypeVar("F", bound=Fact)

#: What judging has where no deadline is named ...
JUDGE_SECONDS = 30.0
#: ... and in any case, even if reading has taken all of the time. It takes 0.1 s.
LEAST_SECONDS = 5.0


@dataclasses.dataclass(frozen=True)
class Policy:
    """How a snapshot is to be judged.

    Attributes:
        scopes: scopes to judge; empty = all.
        limits: condition name to overridden thresholds.
    """

    scopes: frozenset[Scope] = frozenset()
    limits: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)


def judge(
    snapshot: Snapshot,
    units: Iterable[Unit],
    registry: Registry,
    policy: Policy | None = None,
    *,
    deadline: float | None = None,
) -> Report:
    """Runs checks over a snapshot. Pure: the same snapshot gives the same report.

    Args:
        snapshot: what was read.
        units: whose checks run.
        registry: packs.
        policy: how.
        deadline: by `time.monotonic()`; conditions that are not judged by then are unknown. None =
            JUDGE_SECONDS from now. It is for hostile input: on any real machine judging takes
            less than a second.
    """
    begun = time.monotonic()
    deadline = begun + JUDGE_SECONDS if deadline is None else deadline
    policy = policy or Policy()
    findings: list[Finding] = []
    facts = Facts(snapshot)
    asked = 0
    for unit in units:
        if unit.check is None or (policy.scopes and unit.condition.scope not in policy.scopes):
            continue
        asked += 1
        if time.monotonic() > deadline:
            findings.append(not_judged(unit))
            continue
        findings += unit_findings(unit, facts, policy, registry)
    findings = without_blinded(without_wider(findings, registry), registry)
    order = {status: -number for number, status in enumerate(Status)}
    findings.sort(key=lambda finding: order[finding.status])
    report = Report(
        findings=findings,
        counts={
            status.value: sum(finding.status is status for finding in findings) for status in Status
        },
        partial=snapshot.partial,
        unread=_unread(snapshot),
        seconds=round(snapshot.seconds.get("total", 0.0) + time.monotonic() - begun, 3),
    )
    _describe(report, snapshot)
    if snapshot.pasted:
        report.conditions = asked
    report.verdict = _verdict(report, snapshot)
    return report


def not_judged(unit: Unit, status: Status = Status.UNKNOWN) -> Finding:
    """What is said of a condition that was not judged before the deadline."""
    return _signed(Finding(status=status, message="not judged: the time limit was over"), unit)


def unit_findings(unit: Unit, facts: Facts, policy: Policy, registry: Registry) -> list[Finding]:
    """What one condition's check finds, under the condition's name or a narrower one's."""
    return [
        _narrowed(_signed(_placed(finding, unit, facts), unit), unit, registry)
        for finding in _findings(unit, facts, policy)
    ]


def _placed(finding: Finding, unit: Unit, facts: Facts) -> Finding:
    """Names the file beside a line of the config, for readers that show findings at their place."""
    path = facts.run.config_path
    if unit.family != "config" or path is None or "line" not in finding.evidence:
        return finding
    return msgspec.structs.replace(finding, evidence={"config_path": path, **finding.evidence})


def _signed(finding: Finding, unit: Unit) -> Finding:
    return msgspec.structs.replace(
        finding,
        condition=unit.condition.name,
        id=unit.condition.id,
        fixes=unit.condition.fixes if finding.status in (Status.WARN, Status.FAIL) else (),
        scope=unit.condition.scope,
        formerly=unit.condition.formerly or msgspec.UNSET,
    )


#: Of one condition in one report. A config of 20,000 misspelt keys needs no 20,000 lines.
MOST_FINDINGS = 100


class Source(typing.Protocol):
    """What facts are taken from: a snapshot, or something that reads one more lazily."""

    @property
    def run(self) -> RunNeeds:
        """What the run asked for."""
        ...

    def get(self, kind: type[F]) -> F | Missing:
        """The fact of a type, or why it is missing."""
        ...


class Facts:
    """Facts of one snapshot, each read once: many checks ask for the same.

    Attributes:
        snapshot: where they come from.
    """

    def __init__(self, snapshot: Source) -> None:
        self.snapshot = snapshot
        self.known: dict[type[Fact], Fact | Missing] = {}
        self._run: RunNeeds | None = None

    @property
    def run(self) -> RunNeeds:
        """What the run asked for."""
        if self._run is None:
            self._run = self.snapshot.run
        return self._run

    def get(self, kind: type[Fact]) -> Fact | Missing:
        """The fact of a type, or why it is missing."""
        value = self.known.get(kind)
        if value is None:
            value = self.known[kind] = self.snapshot.get(kind)
        return value


def _findings(unit: Unit, snapshot: Facts, policy: Policy) -> Iterator[Finding]:
    if unit.check is None:
        return
    arguments: dict[str, Any] = {}
    for need in needs(unit.check.function):
        if issubclass(need.kind, Limits):
            arguments[need.name] = limits_for(need.kind, unit.condition.name, policy.limits)
            continue
        if need.kind is RunNeeds:
            arguments[need.name] = snapshot.run
            continue
        kind = typing.cast("type[Fact]", need.kind)  # the loader let nothing else pass
        value = snapshot.get(kind)
        if isinstance(value, Missing) and not need.may_be_missing:
            yield _unjudged(kind, value, snapshot.snapshot)
            return
        arguments[need.name] = value
    with partial.watching() as seen:
        findings = _answers(unit, arguments)
    yield from _attributed(findings, seen)


def _answers(unit: Unit, arguments: Mapping[str, Any]) -> list[Finding]:
    """What a check says; what it says before it asks for something that nobody stated counts."""
    findings: list[Finding] = []
    if unit.check is None:
        return findings
    try:
        for number, finding in enumerate(unit.check.function(**arguments)):
            if number == MOST_FINDINGS:
                words = f"further findings of this check are left out, beyond {MOST_FINDINGS}"
                findings.append(Finding(status=finding.status, message=words))
                break
            findings.append(finding)
    except partial.NotStated as gap:
        findings = [finding for finding in findings if finding.status not in UNCERTAIN]
        if not findings:
            message = f"`{gap}` is not stated"
            return [Finding(status=Status.SKIP, message=message)]
        return findings
    except Exception as error:  # noqa: BLE001  # a bug in one check never ends the whole run
        return [
            *findings,
            Finding(
                status=Status.CRASH,
                message=f"the check itself crashed: {type(error).__name__}: {error}",
                hint="report this to the pack's authors, with `dsdoctor snapshot --redact -o FILE`",
                evidence={"pack": unit.pack},
            ),
        ]
    return findings or [Finding(status=Status.OK, message="")]


#: What a check that could not be finished says does not count if it is one of these.
UNCERTAIN = (Status.OK, Status.SKIP)


def _attributed(findings: list[Finding], seen: partial.Watch) -> Iterator[Finding]:
    """Findings over a partial machine: with the lines they rest on, and none fine on a guess."""
    lines = sorted({(at.line, at.reader, at.text) for at in seen.sources.values()})
    stated = [{"line": line, "reader": reader, "text": text} for line, reader, text in lines]
    for finding in findings:
        if seen.open and finding.status is Status.OK:
            message = f"`{seen.open}` is not stated"
            yield Finding(status=Status.SKIP, message=message)
        elif stated and finding.status in (Status.WARN, Status.FAIL):
            evidence = {**finding.evidence, "stated_at": stated}
            yield msgspec.structs.replace(finding, evidence=evidence)
        else:
            yield finding


def _unjudged(kind: type[Fact], missing: Missing, snapshot: Source) -> Finding:
    vital_denied = (
        missing.why is Why.DENIED
        and kind in VITAL
        and (snapshot.run.wants_gpu or _has_gpu(snapshot))
    )
    status = Status.UNKNOWN if missing.is_unknown or vital_denied else Status.SKIP
    return Finding(
        status=status,
        message=missing.detail,
        evidence={"fact": kind.key(), "why": missing.why.value},
    )


def _has_gpu(snapshot: Source) -> bool:
    kernel = snapshot.get(NvidiaKernel)
    return not isinstance(kernel, Missing) and bool(kernel.pci or kernel.device_nodes)


def _narrowed(finding: Finding, unit: Unit, registry: Registry) -> Finding:
    """Gives a failure the name of a narrower condition that its own error text shows."""
    text = str(finding.evidence.get("error_text", ""))
    if finding.status is not Status.FAIL or not text:
        return finding
    for name in unit.condition.narrower:
        narrower = registry.find(name)
        if narrower and recognises(narrower, text):
            named = _signed(finding, narrower)
            return msgspec.structs.replace(named, hint=narrower.hint or finding.hint)
    return finding


def recognises(unit: Unit, text: str) -> bool:
    """Whether a condition's signatures match a line of a text."""
    return any(
        re.search(signature.pattern, line)
        for signature in unit.signatures
        for line in text.splitlines()
    )


def without_wider(findings: list[Finding], registry: Registry) -> list[Finding]:
    """Drops a condition's failures where a narrower condition failed as well.

    Where both name keys of a config, only those about the same key are dropped.
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
    """Skips what is unknown only because a condition that failed hides the fact.

    A failed NVML leaves every check of a GPU without an answer: one line says why.
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
    """Dotted keys of a config that a finding is about; empty where it names none."""
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


def _unread(snapshot: Snapshot) -> dict[str, str]:
    found: dict[str, str] = {}
    for kind in VITAL:
        value = snapshot.get(kind)
        asked = snapshot.run.wants_gpu or _has_gpu(snapshot)
        if isinstance(value, Missing) and (value.is_unknown or (value.why is Why.DENIED and asked)):
            found[kind.key()] = value.detail
    return found


def _verdict(report: Report, snapshot: Snapshot) -> Verdict:
    statuses = {finding.status for finding in report.findings}
    if Status.FAIL in statuses:
        return Verdict.FAULTY
    if snapshot.pasted:
        return Verdict.UNKNOWN  # what a text leaves out may be what is wrong
    nothing = all(isinstance(snapshot.get(kind), Missing) for kind in VITAL)
    unsure = statuses & {Status.UNKNOWN, Status.CRASH}
    if unsure or report.unread or nothing or report.partial:
        return Verdict.UNKNOWN
    return Verdict.HEALTHY


def _describe(report: Report, snapshot: Snapshot) -> None:
    with contextlib.suppress(partial.NotStated):
        _describe_gpus(report, snapshot)
    with contextlib.suppress(partial.NotStated):
        _describe_driver(report, snapshot)
    report.host = _stated(snapshot.get(OsInfo), "hostname") or ""
    choice = snapshot.get(PatientChoice)
    report.patient = PatientLine(
        python=_stated(choice, "executable"),
        chosen_by=_stated(choice, "chosen_by"),
        torch=_stated(snapshot.get(TorchBuild), "version"),
        deepspeed=_stated(snapshot.get(DeepSpeedInstall), "version"),
    )
    _note_run(report, snapshot)
    if snapshot.partial:
        report.notes.append("interrupted: this report is partial")
    if snapshot.origin:
        report.origin = snapshot.origin
    if snapshot.pasted:
        spoken = {f.condition for f in report.findings if f.status is not Status.SKIP}
        report.judged = len(spoken)


def _stated(fact: Fact | Missing, name: str) -> str | None:
    """A field of a fact, None where the fact is missing or does not state it."""
    if isinstance(fact, Missing):
        return None
    try:
        value = getattr(fact, name)
    except partial.NotStated:
        return None
    return None if value is None else str(value)


def _describe_gpus(report: Report, snapshot: Snapshot) -> None:
    gpus = snapshot.get(Gpus)
    if not isinstance(gpus, Missing):
        names: dict[str, int] = {}
        for gpu in gpus.gpus:
            name = gpu.name or "unreadable GPU"
            names[name] = names.get(name, 0) + 1
        report.gpus = [f"{count} × {name}" for name, count in names.items()]
    matrix = build_matrix(gpus, snapshot.get(GpuTopology), snapshot.get(PciTree))
    if matrix is not None:
        report.topology = matrix
    demand = snapshot.get(MemoryDemand)
    if not isinstance(demand, Missing) and demand.source == "model":
        report.memory = demand


def _describe_driver(report: Report, snapshot: Snapshot) -> None:
    nvml, kernel = snapshot.get(Nvml), snapshot.get(NvidiaKernel)
    if not isinstance(nvml, Missing):
        report.driver = nvml.driver_version
    if report.driver is None and not isinstance(kernel, Missing):
        report.driver = kernel.module_version


def _note_run(report: Report, snapshot: Snapshot) -> None:
    run = snapshot.run
    report.config = run.config_path
    if run.config_named_by:
        report.notes.append(f"`{run.config_path}` is judged because {run.config_named_by} names it")
    if run.followed:
        report.notes.append(f"the command that was judged is {run.followed}")
    if run.not_followed:
        report.notes.append(f"the command was not judged: {run.not_followed}")
    if run.quick:
        report.notes.append("torch not started (--quick)")
