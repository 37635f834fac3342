"""judge(snapshot) -> Report: runs the checks; the same snapshot gives the same report."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec

from dsdoctor import host_actions, precedence, report_head
from dsdoctor.errors import UsageError
from dsdoctor.fact_source import Facts, FactSource, has_gpu
from dsdoctor.model import partial
from dsdoctor.model.condition import Limits
from dsdoctor.model.facts.base import Fact, Missing, Why
from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.model.facts.machine import Environment
from dsdoctor.model.facts.python import Patient
from dsdoctor.model.facts.run import RunNeeds, Scope
from dsdoctor.model.finding import Finding, Status
from dsdoctor.model.report import Report
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.model.vital import VITAL
from dsdoctor.packs import containment
from dsdoctor.packs.places import BUILTIN
from dsdoctor.packs.registry import Registry, Unit, limits_for, needs
from dsdoctor.time_limit import OutOfTimeError, ends_by

#: Time for judging without a deadline ...
JUDGE_SECONDS = 30.0
#: ... and the least, even if reading has taken all of the time. It usually takes 0.1 s.
LEAST_SECONDS = 5.0
#: For one condition in one report: a config with 20,000 misspelled keys needs no 20,000 lines.
MOST_FINDINGS = 100
OUT_OF_TIME = "not judged: the time limit was reached"
#: Findings of a check that could not be finished are dropped if they have one of these statuses.
UNCERTAIN = (Status.OK, Status.SKIP)


class Policy(msgspec.Struct, frozen=True):
    """Which conditions to judge, with which thresholds.

    Attributes:
        scopes: scopes to judge; empty = all.
        limits: condition name to overridden thresholds.
    """

    scopes: frozenset[Scope] = frozenset()
    limits: Mapping[str, Mapping[str, float]] = msgspec.field(default_factory=dict)


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
        policy: scopes and thresholds.
        deadline: a time of `time.monotonic()`; conditions that are not judged by then are unknown.
            None = JUDGE_SECONDS from now. It limits hostile input: judging a real machine takes
            less than a second.
    """
    begun = time.monotonic()
    deadline = begun + JUDGE_SECONDS if deadline is None else deadline
    policy = policy or Policy()
    findings: list[Finding] = []
    facts = Facts(snapshot)
    asked = 0
    narrowed: set[int] = set()
    for unit in units:
        if unit.check is None or (policy.scopes and unit.condition.scope not in policy.scopes):
            continue
        asked += 1
        if time.monotonic() > deadline:
            findings.append(not_judged(unit))
            continue
        found = unit_findings(unit, facts, policy, registry, deadline)
        narrowed |= {
            len(findings) + place
            for place, one in enumerate(found)
            if one.condition != unit.condition.name
        }
        findings += found
    findings = precedence.without_repeated(findings, narrowed)
    findings = precedence.without_blinded(precedence.without_wider(findings, registry), registry)
    if snapshot.origin and not snapshot.pasted:
        # `fix` sees this machine and not the one that was composed; the job's files are here
        findings = [
            finding if finding.scope is Scope.JOB else msgspec.structs.replace(finding, fixes=())
            for finding in findings
        ]
    order = {status: -number for number, status in enumerate(Status)}
    findings.sort(key=lambda finding: order[finding.status])
    report = Report(
        findings=findings,
        counts={
            status.value: sum(finding.status is status for finding in findings) for status in Status
        },
        partial=snapshot.partial,
        unread=report_head.unread_of(snapshot),
        seconds=round(snapshot.seconds.get("total", 0.0) + time.monotonic() - begun, 3),
        facts_as_of=registry.facts_as_of or msgspec.UNSET,
    )
    report_head.describe(report, snapshot)
    if snapshot.pasted:
        report.conditions = asked
    report.verdict = report_head.verdict_of(report, snapshot)
    return report


def require_checks(units: Iterable[Unit], policy: Policy) -> None:
    """A report over no check at all would be healthy.

    Raises:
        UsageError: no condition of `units` can be judged in the scopes of `policy`.
    """
    units = tuple(units)
    checked = [unit for unit in units if unit.check is not None]
    if not checked and len(units) == 1:
        raise UsageError(
            f"`{units[0].condition.name}` is recognized only in logs; no check predicts it"
        )
    if not any(not policy.scopes or u.condition.scope in policy.scopes for u in checked):
        raise UsageError("no check is left to run; select more, ignore less, or omit `--scope`")


def not_judged(unit: Unit, status: Status = Status.UNKNOWN) -> Finding:
    """The finding for a condition that was not judged before the deadline."""
    return _signed(Finding(status=status, message=OUT_OF_TIME), unit)


def unit_findings(
    unit: Unit, facts: Facts, policy: Policy, registry: Registry, deadline: float | None = None
) -> list[Finding]:
    """What one condition's check finds, under the condition's name or a narrower one's.

    Args:
        unit: whose check runs.
        facts: what it judges.
        policy: scopes and thresholds.
        registry: packs.
        deadline: as for `judge`.
    """
    end = time.monotonic() + JUDGE_SECONDS if deadline is None else deadline
    return [
        host_actions.in_container(
            _with_possible_fixes(
                _attach_condition(_with_config_path(finding, unit, facts), unit, registry),
                registry,
                facts,
            ),
            facts,
        )
        for finding in _findings(unit, facts, policy, end)
    ]


def _attach_condition(finding: Finding, unit: Unit, registry: Registry) -> Finding:
    """Files a finding under its condition, or under a narrower one that its error text shows."""
    found = precedence.narrower_of(finding, unit, registry)
    if found is None:
        return _signed(finding, unit)
    narrower, hint = found
    return msgspec.structs.replace(_signed(finding, narrower), hint=hint or finding.hint)


def _with_possible_fixes(finding: Finding, registry: Registry, facts: Facts) -> Finding:
    """The finding without fixes that only an environment can get, if the interpreter is in none."""
    if not finding.fixes or not _is_outside_environments(facts.get(Patient)):
        return finding
    known = registry.fixes
    fixes = tuple(
        name for name in finding.fixes if name not in known or not known[name].fix.in_environment
    )
    return msgspec.structs.replace(finding, fixes=fixes)


def _is_outside_environments(patient: Fact | Missing | None) -> bool:
    try:
        return isinstance(patient, Patient) and patient.kind == "system"
    except partial.NotStated:  # a pasted text may not state it
        return False


def _with_config_path(finding: Finding, unit: Unit, facts: Facts) -> Finding:
    """Adds the file to a finding about a line of the config, for editors that show it there."""
    path = facts.run.config_path
    if unit.family != "config" or path is None or "line" not in finding.evidence:
        return finding
    return msgspec.structs.replace(finding, evidence={"config_path": path, **finding.evidence})


def _signed(finding: Finding, unit: Unit) -> Finding:
    fixable = finding.status in (Status.WARN, Status.FAIL) and finding.by_hand is not True
    chosen = tuple(name for name in finding.fixes if name in unit.condition.fixes)
    return msgspec.structs.replace(
        finding,
        condition=unit.condition.name,
        id=unit.condition.id,
        fixes=(chosen or unit.condition.fixes) if fixable else (),
        scope=Scope.JOB if finding.scope is Scope.JOB else unit.condition.scope,
        formerly=unit.condition.formerly or msgspec.UNSET,
    )


def _findings(unit: Unit, snapshot: Facts, policy: Policy, deadline: float) -> Iterator[Finding]:
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
        kind = cast("type[Fact]", need.kind)  # the loader accepts nothing else
        value = snapshot.get(kind)
        if isinstance(value, Missing) and not need.may_be_missing:
            yield _unjudged(kind, value, snapshot.snapshot)
            return
        arguments[need.name] = value
    with partial.watching() as seen:
        findings = _answers(unit, arguments, deadline)
    yield from _with_sources(findings, seen, snapshot)


def _answers(unit: Unit, arguments: Mapping[str, Any], deadline: float) -> list[Finding]:
    """The findings of a check; problems found before it needs a field that is not stated count."""
    findings: list[Finding] = []
    if unit.check is None:
        return findings
    try:
        with ends_by(deadline), containment.contained(unit.pack):
            given = containment.findings_of(unit.check.function(**arguments))
            for number, finding in enumerate(map(containment.usable, given)):
                if number == MOST_FINDINGS:
                    words = f"further findings of this check are left out (limit: {MOST_FINDINGS})"
                    findings.append(Finding(status=finding.status, message=words))
                    break
                findings.append(finding)
    except OutOfTimeError:
        kept = [finding for finding in findings if finding.status not in UNCERTAIN]
        return [*kept, Finding(status=Status.UNKNOWN, message=OUT_OF_TIME)]
    except partial.NotStated as gap:
        findings = [finding for finding in findings if finding.status not in UNCERTAIN]
        if not findings:
            message = f"`{gap}` is not stated"
            return [Finding(status=Status.SKIP, message=message)]
        return findings
    except Exception as error:  # noqa: BLE001  # a bug in one check must not end the run
        return [*findings, _crashed(unit, error)]
    return findings or [Finding(status=Status.OK, message="")]


def _crashed(unit: Unit, error: Exception) -> Finding:
    who = "the check itself" if unit.pack == BUILTIN else f"the check of pack `{unit.pack}`"
    return Finding(
        status=Status.CRASH,
        message=f"{who} crashed: {containment.said(error)}",
        hint="report this to the pack's authors, with `dsdoctor snapshot --redact -o FILE`",
        evidence={"pack": unit.pack},
    )


#: A field of a GPU, by its place in the list.
_OF_GPU = re.compile(r"gpus\.gpus\.(\d{1,4})\.")
#: A field of a row of the scheduler's list of nodes; `rows` of the evidence says which it is about.
_OF_NODE = re.compile(r"cluster_nodes\.nodes(?:\.(?P<row>\d{1,4})\.|$)")


def _numbers_of_gpus(facts: Facts) -> dict[int, int]:
    """Position in the list of GPUs to index; empty if the indices are not known."""
    gpus = facts.get(Gpus)
    with contextlib.suppress(partial.NotStated):
        if isinstance(gpus, Gpus):
            return {place: gpu.index for place, gpu in enumerate(gpus.gpus)}
    return {}


def _with_sources(findings: list[Finding], seen: partial.Watch, facts: Facts) -> Iterator[Finding]:
    """Findings about a partial machine, with their lines; an `ok` without evidence is a skip."""
    numbers = _numbers_of_gpus(facts) if seen.sources else {}
    pasted = facts.snapshot.sources if isinstance(facts.snapshot, Snapshot) else {}
    variables = pasted.get(Environment.key(), {})
    for finding in findings:
        if seen.open and finding.status is Status.OK:
            yield Finding(status=Status.SKIP, message=f"`{seen.open}` is not stated")
            continue
        is_problem = finding.status in (Status.WARN, Status.FAIL)
        known = is_problem and (seen.sources or variables)
        stated = _stated_at(finding, seen, numbers, variables) if known else []
        if not stated:
            yield finding
            continue
        evidence = {**finding.evidence, "stated_at": stated}
        yield msgspec.structs.replace(finding, evidence=evidence)


def _names_in(evidence: Mapping[str, Any]) -> Iterator[str]:
    """What may be the name of a variable in the evidence of a finding."""
    for value in evidence.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from value


def _stated_at(
    finding: Finding,
    seen: partial.Watch,
    numbers: Mapping[int, int],
    variables: Mapping[str, partial.Source],
) -> list[dict[str, Any]]:
    """The lines that support a finding; if it is about some GPUs, without those of the others.

    A check that goes through all variables reads none by its name; those that it reports count.
    """
    value = finding.evidence.get("gpu", finding.evidence.get("gpus"))
    about = value if isinstance(value, list) else [value]
    about_gpus = bool(about) and all(isinstance(number, int) for number in about)
    lines = set()
    for name, at in seen.sources.items():
        found = _OF_GPU.match(name)
        if about_gpus and found and numbers.get(int(found[1]), about[0]) not in about:
            continue
        of_node = _OF_NODE.match(name)
        if of_node and "rows" in finding.evidence:
            row = of_node["row"]
            if row is None or int(row) not in finding.evidence["rows"]:
                continue
        if at.line:
            lines.add((at.line, at.reader, at.text))
    for name in _names_in(finding.evidence):
        if (stated := variables.get(f"variables.{name}")) and stated.line:
            lines.add((stated.line, stated.reader, stated.text))
    return [{"line": line, "reader": reader, "text": text} for line, reader, text in sorted(lines)]


def _unjudged(kind: type[Fact], missing: Missing, snapshot: FactSource) -> Finding:
    vital_denied = (
        missing.why is Why.DENIED
        and kind in VITAL
        and (snapshot.run.wants_gpu or has_gpu(snapshot))
    )
    status = Status.UNKNOWN if missing.is_unknown or vital_denied else Status.SKIP
    return Finding(
        status=status,
        message=missing.detail,
        evidence={"fact": kind.key(), "why": missing.why.value},
    )
