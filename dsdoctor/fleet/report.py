"""The fleet's report: one screen for any number of nodes."""

from __future__ import annotations

import textwrap

import msgspec

from dsdoctor.fleet.merge import FleetFinding, FleetReport, Group
from dsdoctor.model.plain import one_line, shortened

FINDINGS = 12
GROUPS = 6
MESSAGE_LINES = 3
_INDENT = " " * 8
_WORDS = {"fail": "FAIL", "warn": "WARN", "unknown": "UNKNOWN", "crash": "CRASH"}
_HEAD = ("GPUs", "driver", "torch", "DeepSpeed", "NCCL", "kernel")


def json(report: FleetReport) -> str:
    """The report as JSON."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"


def text(report: FleetReport, *, width: int = 100, verbose: bool = False) -> str:
    """The report as text: counts, findings (worst first), groups of identical nodes."""
    total = sum(report.counts.values())
    counted = [f"{n} {name}" for name, n in report.counts.items() if n]
    lines = [f"{total} {_nodes(total)}: {', '.join(counted) or 'none'}", ""]
    shown = report.findings if verbose else report.findings[:FINDINGS]
    for finding in shown:
        lines += _finding(finding, width, hint=verbose or len(shown) <= FINDINGS // 2)
    hidden = len(report.findings) - len(shown)
    if hidden:
        lines.append(f"… and {hidden} more finding{'s' * (hidden > 1)} (`-v`, or `--format json`)")
    if report.findings:
        lines.append("")
    groups = report.groups if verbose else report.groups[:GROUPS]
    usual = next((group for group in groups if group.error is None), None)
    for group in groups:
        lines += _group(group, usual, width)
    hidden = len(report.groups) - len(groups)
    if hidden:
        rest = sum(group.count for group in report.groups[GROUPS:])
        lines.append(f"… and {hidden} more group{'s' * (hidden > 1)} of {rest} {_nodes(rest)}")
    lines += ["", f"{report.verdict} ({report.seconds:.1f} s)"]
    return "\n".join(lines) + "\n"


def _nodes(count: int) -> str:
    return "node" if count == 1 else "nodes"


def _finding(finding: FleetFinding, width: int, *, hint: bool) -> list[str]:
    head = f"{_WORDS.get(finding.status, finding.status):<7} {finding.condition}"
    head += f" ({finding.id})" if finding.id else ""
    number = f" ({finding.count} nodes)" if finding.count > 1 else ""
    room = max(20, width - len(head) - 3 - len(number))
    lines = [f"{head} · {_names(finding.nodes, room)}{number}"]
    lines += _wrapped(one_line(finding.message), width)
    if hint and finding.hint:
        lines += _wrapped(f"hint: {one_line(finding.hint)}", width)
    return lines


def _group(group: Group, usual: Group | None, width: int) -> list[str]:
    """The usual nodes with their traits, other groups with their differences."""
    where = _names(group.nodes, max(24, width // 2))
    number = f"{group.count} {_nodes(group.count)}"
    if group.error is not None:
        return [f"{where} no report ({number})"]
    if group is usual or usual is None:
        word = " identical" if group.count > 1 else ""
        traits = [
            group.traits[name] if name == "GPUs" else f"{name} {group.traits[name]}"
            for name in _HEAD
            if name in group.traits
        ]
        return [
            f"{where}{word} ({number}, {group.verdict})",
            *_wrapped(one_line(" · ".join(traits)), width),
        ]
    differs = [
        f"{name} {group.traits.get(name) or 'missing'}"
        for name in dict.fromkeys([*_HEAD, *usual.traits, *group.traits])
        if group.traits.get(name) != usual.traits.get(name)
    ]
    differs += [name for name in group.conditions if name not in usual.conditions]
    text = one_line(", ".join(differs)) or "fewer findings"
    return [shortened(f"{where} ({number}, {group.verdict}): {text}", width)]


def _names(nodes: str, width: int) -> str:
    """Folded names, truncated between two names."""
    nodes = one_line(nodes)
    if len(nodes) <= width:
        return nodes
    kept = nodes[: width - 2].rpartition(",")[0] or nodes[: width - 2]
    return f"{kept},…" + ("]" if kept.count("[") > kept.count("]") else "")


def _wrapped(words: str, width: int) -> list[str]:
    return textwrap.wrap(
        words,
        width,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        max_lines=MESSAGE_LINES,
        placeholder=" …",
        break_on_hyphens=False,
    )
