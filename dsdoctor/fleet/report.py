"""The fleet's report: one screen however many nodes there are."""

from __future__ import annotations

import re

import msgspec

from dsdoctor.fleet.merge import FleetFinding, FleetReport, Group

FINDINGS = 12
GROUPS = 6
_WORDS = {"fail": "FAIL", "warn": "WARN", "unknown": "UNKNOWN", "crash": "CRASH"}
_HEAD = ("GPUs", "driver", "torch", "DeepSpeed", "NCCL", "kernel")


def clean(text: str) -> str:
    """One line without control characters."""
    return " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", text).split())


def json(report: FleetReport) -> str:
    """The machine's report."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"


def text(report: FleetReport, *, width: int = 100, verbose: bool = False) -> str:
    """The reader's report: counts, what is wrong (worst first), groups of identical nodes."""
    total = sum(report.counts.values())
    counted = [f"{n} {name}" for name, n in report.counts.items() if n]
    lines = [f"{total} {_nodes(total)}: {', '.join(counted) or 'none'}", ""]
    shown = report.findings if verbose else report.findings[:FINDINGS]
    for finding in shown:
        lines += _finding(finding, width, hint=verbose or len(shown) <= FINDINGS // 2)
    hidden = len(report.findings) - len(shown)
    if hidden:
        lines.append(f"… and {hidden} more findings (`-v`, or `--format json`)")
    if report.findings:
        lines.append("")
    groups = report.groups if verbose else report.groups[:GROUPS]
    for group in groups:
        lines.append(_group(group, report, width))
    hidden = len(report.groups) - len(groups)
    if hidden:
        rest = sum(group.count for group in report.groups[GROUPS:])
        lines.append(f"… and {hidden} more groups of {rest} {_nodes(rest)}")
    lines += ["", f"{report.verdict} ({report.seconds:.1f} s)"]
    return "\n".join(lines) + "\n"


def _nodes(count: int) -> str:
    return "node" if count == 1 else "nodes"


def _finding(finding: FleetFinding, width: int, *, hint: bool) -> list[str]:
    name = finding.condition + (f" ({finding.id})" if finding.id else "")
    where = _cut(finding.nodes, max(20, width // 2))
    lines = [f"{_WORDS.get(finding.status, finding.status):<7} {name} · {where}"]
    lines.append(_cut(f"        {clean(finding.message)}", width * 2))
    if hint and finding.hint:
        lines.append(f"        hint: {clean(finding.hint)}")
    return lines


def _group(group: Group, report: FleetReport, width: int) -> str:
    where = _cut(group.nodes, max(20, width // 2))
    if group.error is not None:
        return f"{where}  no report"
    word = "identical" if group.count > 1 else "alone"
    traits = [
        f"{name} {group.traits[name]}" if name != "GPUs" else group.traits[name]
        for name in _HEAD
        if name in group.traits and (name in _HEAD[:4] or name not in report.common)
    ]
    return _cut(f"{where} {word} ({group.verdict}): {clean(' · '.join(traits))}", width)


def _cut(words: str, width: int) -> str:
    return words if len(words) <= width else words[: width - 1] + "…"
