"""Merges the reports of many nodes: groups of identical nodes, differences, findings. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dsdoctor.fleet.names import fold
from dsdoctor.fleet.nodes import NodeReport
from dsdoctor.fleet.traits import BREAKING, not_reported
from dsdoctor.model.plain import shortened

SCHEMA = "dsdoctor/fleet"
VERSION = 1
#: Characters of a trait's value that a message shows.
_LONGEST_VALUE = 60
_ORDER = {"fail": 0, "crash": 1, "unknown": 2, "warn": 3}


class FleetFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A problem on some nodes, or between them.

    Attributes:
        status: `fail`, `warn`, `unknown` or `crash`.
        condition: of one node's condition, or `fleet-…` between nodes.
        message: of one of the nodes.
        hint: how to fix it.
        nodes: folded names.
        count: how many nodes.
        id: of one node's condition.
        evidence: values behind the message.
    """

    status: str
    condition: str
    message: str
    nodes: str
    count: int
    hint: str = ""
    id: str = ""
    evidence: dict[str, str] = {}


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that are equal in every trait and every finding.

    Attributes:
        nodes: folded names.
        count: how many.
        verdict: of each.
        traits: of each.
        conditions: problems of each.
        error: why they did not answer; None if they did.
    """

    nodes: str
    count: int
    verdict: str
    traits: dict[str, str] = {}
    conditions: tuple[str, ...] = ()
    error: str | None = None


class FleetReport(msgspec.Struct, kw_only=True):
    """What `fleet check --format json` prints.

    Attributes:
        schema, version: of this format.
        verdict: `healthy`, `faulty` or `unknown`.
        counts: nodes by verdict; `silent` nodes did not answer.
        findings: worst first.
        groups: identical nodes, the largest first.
        common: traits that all answering nodes share.
        seconds: how long it took.
    """

    schema: str = SCHEMA
    version: int = VERSION
    verdict: str = "unknown"
    counts: dict[str, int] = {}
    findings: list[FleetFinding] = []
    groups: list[Group] = []
    common: dict[str, str] = {}
    seconds: float = 0.0


def merge(
    nodes: Sequence[NodeReport],
    between: Iterable[FleetFinding] = (),
    golden: Mapping[str, str] | None = None,
) -> FleetReport:
    """The report on a fleet.

    Args:
        nodes: reports of the nodes.
        between: findings that need more than one node.
        golden: traits that nodes must have; None = the traits of the majority.
    """
    findings = [*_silent_nodes(nodes), *between, *_of_nodes(nodes), *drift(nodes, golden)]
    findings.sort(key=lambda f: (_ORDER.get(f.status, 9), -f.count, f.condition, f.nodes))
    counts = Counter(node.verdict for node in nodes)
    statuses = {finding.status for finding in findings}
    verdict = "healthy"
    if "fail" in statuses:
        verdict = "faulty"
    elif statuses & {"unknown", "crash"} or not nodes:
        verdict = "unknown"
    answering = [node for node in nodes if node.error is None]
    common = dict(answering[0].traits) if answering else {}
    for node in answering[1:]:
        common = {n: v for n, v in common.items() if node.traits.get(n) == v}
    return FleetReport(
        verdict=verdict,
        counts={name: counts.get(name, 0) for name in ("healthy", "faulty", "unknown", "silent")},
        findings=findings,
        groups=_groups(nodes),
        common=common,
    )


def exit_code(report: FleetReport, fail_on: str | None = None) -> int:
    """Status of `fleet check`: as `check`'s (docs/architecture.md).

    >>> exit_code(FleetReport(verdict="unknown")), exit_code(FleetReport(verdict="healthy"))
    (3, 0)
    """
    if report.verdict == "faulty":
        return 1
    levels = {"warn": ("warn", "unknown", "crash"), "unknown": ("unknown", "crash")}
    if any(f.status in levels.get(fail_on or "", ()) for f in report.findings):
        return 1
    return 3 if report.verdict == "unknown" else 0


def _silent_nodes(nodes: Iterable[NodeReport]) -> list[FleetFinding]:
    by_error: dict[str, dict[str, str]] = {}
    for node in nodes:
        if node.error is not None:
            # the same error of many nodes, each with its own name in it, is one finding
            alone = rf"(?<![\w.-]){re.escape(node.name)}(?![\w-])"
            text = re.sub(alone, "NODE", node.error)
            by_error.setdefault(text, {})[node.name] = node.error
    return [
        FleetFinding(
            status="fail",
            condition="fleet-node-silent",
            message=f"no report: {error if len(errors) > 1 else next(iter(errors.values()))}",
            hint="correct the name, or add it to DNS or /etc/hosts"
            if "Could not resolve hostname" in error
            else "log in to the node to see why, or exclude the node from the job",
            nodes=fold(errors),
            count=len(errors),
        )
        for error, errors in by_error.items()
    ]


def _of_nodes(nodes: Iterable[NodeReport]) -> list[FleetFinding]:
    """Findings of single nodes, grouped by condition."""
    rows: dict[tuple[str, str], list[tuple[str, str, str, str]]] = {}
    for node in nodes:
        for found in node.findings:
            key = (found.condition, found.status)
            rows.setdefault(key, []).append((node.name, found.message, found.hint, found.id))
    merged = []
    for (condition, status), entries in rows.items():
        names = list(dict.fromkeys(name for name, *_ in entries))
        message = Counter(text for _, text, *_ in entries).most_common(1)[0][0]
        merged.append(
            FleetFinding(
                status=status,
                condition=condition,
                id=entries[0][3],
                message=message,
                hint=entries[0][2],
                nodes=fold(names),
                count=len(names),
            )
        )
    return merged


def drift(
    nodes: Sequence[NodeReport], golden: Mapping[str, str] | None = None
) -> list[FleetFinding]:
    """Traits in which nodes differ from the majority, or from a golden node."""
    answering = [node for node in nodes if node.error is None]
    if len(answering) < 2 and golden is None:  # noqa: PLR2004  # it takes two to differ
        return []
    names = dict.fromkeys(name for node in answering for name in node.traits)
    if golden is not None:
        names |= dict.fromkeys(golden)
    found: list[FleetFinding] = []
    for name in names:
        values: dict[str, list[str]] = {}
        for node in answering:
            values.setdefault(node.traits.get(name, ""), []).append(node.name)
        wanted = golden.get(name, "") if golden is not None else _majority(values)
        for value, holders in values.items():
            if value == wanted:
                continue
            if golden is not None:
                whose = "the golden snapshot"
            else:  # of two groups of the same size, none is the majority
                others = values[wanted]
                whose = "the majority" if len(others) > len(holders) else fold(others)
            found.append(_drifted(name, value, wanted, holders, whose))
    return found


def _majority(values: Mapping[str, Sequence[str]]) -> str:
    """The most frequent value; of two that are equally frequent, the one of the first node."""
    return max(values, key=lambda value: len(values[value]))


#: Traits that are more than one thing.
_PLURAL = ("GPUs", "CPUs")


def _drifted(
    name: str, value: str, wanted: str, holders: Sequence[str], whose: str
) -> FleetFinding:
    """A finding on the nodes with one value; `whose` is the source of the expected one."""
    have = f"`{shortened(value, _LONGEST_VALUE)}`" if value else not_reported(name)
    without = "does not set it" if name.startswith("variable ") else "does not report it"
    want = f"has `{shortened(wanted, _LONGEST_VALUE)}`" if wanted else without
    unread = not (value and wanted)  # a value that is not known is no failure
    return FleetFinding(
        status="fail" if name in BREAKING and not unread else "warn",
        condition="fleet-drift",
        message=f"{name} {'are' if name in _PLURAL else 'is'} {have}, but {whose} {want}",
        hint=_hint(name, unread=unread),
        nodes=fold(holders),
        count=len(holders),
        evidence={"trait": name, "value": value, "expected": wanted},
    )


def _hint(name: str, *, unread: bool) -> str:
    if name.startswith("variable "):
        variable = name.partition(" ")[2]
        return (
            f"set `{variable}` to the same value on all nodes; the deepspeed launcher forwards "
            "only names that start with NCCL, PYTHON, MV2 or UCX, and those in `.deepspeed_env`"
        )
    if name.startswith("mount "):
        return "mount the same file system on every node"
    if unread:
        return "to see why, run `dsdoctor check` on a node that does not report it"
    if name in ("driver", "CUDA of the driver", "VBIOS", "kernel") or name.startswith("firmware"):
        return "install the version that the other nodes have, or exclude the node from the job"
    if name in ("GPUs", "CPUs", "memory"):
        return "look for failed hardware, or do not mix node types in one job"
    return "install the same version on every node, or share one environment"


def _groups(nodes: Iterable[NodeReport]) -> list[Group]:
    members: dict[tuple[object, ...], list[NodeReport]] = {}
    for node in nodes:
        key = (
            node.error,
            tuple(sorted(node.traits.items())),
            tuple(sorted((f.condition, f.status) for f in node.findings)),
        )
        members.setdefault(key, []).append(node)
    groups = [
        Group(
            nodes=fold(node.name for node in same),
            count=len(same),
            verdict=same[0].verdict,
            traits=same[0].traits,
            conditions=tuple(dict.fromkeys(f.condition for f in same[0].findings)),
            error=same[0].error,
        )
        for same in members.values()
    ]
    return sorted(groups, key=lambda group: (-group.count, group.nodes))
