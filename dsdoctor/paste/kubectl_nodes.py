"""`kubectl describe node`, `kubectl get node` (table, YAML or JSON): allocatable GPUs of nodes.

Source: Kubernetes 1.20 to 1.34, staging/src/k8s.io/kubectl/pkg/describe/describe.go
(`describeNode`) and pkg/printers/internalversion/printers.go; labels of NVIDIA's GPU feature
discovery, of node feature discovery and of the managed services, read 2026-11-23.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.cluster import ClusterNodes
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.slurm_nodes import MOST_NODES
from dsdoctor.paste.slurm_nodes import READER as SLURM
from dsdoctor.paste.statements import Statements

_NAME = re.compile(r"Name:\s+(?P<name>[a-z0-9][\w.-]*)\s*$")
_TAINT = re.compile(r"(?:Taints:)?\s+node\.kubernetes\.io/(?P<taint>unreachable|not-ready):No")

#: `Capacity:` of `describe`, `"capacity": {` and `capacity:` of the other formats.
_PART = re.compile(r'(?P<indent>\s*)"?(?P<part>[Cc]apacity|[Aa]llocatable)"?:\s*\{?\s*$')
_ITEM = re.compile(r'(?P<indent>\s+)"?(?P<key>[\w./-]{2,80})"?\s*:\s*"?(?P<value>\d+)\w*"?,?\s*$')
_GPU = re.compile(r"(?:nvidia|amd)\.com/(?:gpu|mig-[\w.]+)$")
_LABELS = re.compile(
    r"nvidia\.com/gpu\.(?:present=true|product=|count=[1-9])|feature\.node\.kubernetes\.io/pci-"
    r"(?:\d{4}_)?10de\.present=true|cloud\.google\.com/gke-accelerator=nvidia"
)
_READY = re.compile(r"\s+Ready\s+(?P<status>True|False|Unknown)\s+\w{3}, ")
#: A row of any condition if the kubelet does not report: all of them become unknown.
_SILENT = re.compile(r"\s+\w+\s+Unknown\s+\w{3}, .*\sNodeStatusUnknown\s+(?P<said>\S.*)$")
_MESSAGE = re.compile(r"\s(?P<reason>Kubelet\w+|NodeStatus\w+)\s+(?P<said>\S.*)$")
_HEADING = re.compile(r"\s*NAME\s+STATUS\s+ROLES\s+AGE\s+VERSION")
_ROW = re.compile(
    r"\s*(?P<name>[a-z0-9][\w.-]*)\s+(?P<status>(?:Not)?Ready|Unknown)(?:,SchedulingDisabled)?\s+"
    r"\S+\s+\w+\s+v1\."
)
_PENDING = re.compile(r"\b[1-9]\d* Insufficient (?:nvidia|amd)\.com/gpu\b")
#: Both parts list these, so items without them belong to something else.
_ALWAYS = frozenset({"cpu", "memory", "pods"})
#: Lines of labels, conditions and addresses between the name of a node and its capacity.
_APART = 150
_ITEMS = 30


class _Node:
    """What the text says about one node."""

    def __init__(self, name: str, line: Line) -> None:
        self.name = name
        self.line = line
        self.parts: dict[str, dict[str, int]] = {}
        self.rows: dict[str, Line] = {}
        self.labelled = False
        self.status = ""
        self.reason = ""

    def take(self, which: str, items: dict[str, tuple[int, Line]]) -> None:
        """Takes the items of its capacity, or of its allocatable resources."""
        self.parts[which] = {key: count for key, (count, _) in items.items()}
        rows = [line for key, (_, line) in items.items() if _GPU.match(key)]
        if rows:
            self.rows[which] = rows[0]


def _read(lines: Sequence[Line], into: Statements) -> None:
    if into.recognizes((SLURM.name,)):
        return  # nodes of two schedulers are two clusters
    nodes: list[_Node] = []
    pending: Line | None = None
    begun = -_APART
    for place, line in enumerate(lines):
        named = _NAME.match(line.text)
        if named:
            nodes.append(_Node(named["name"], line))
            begun = place
        elif part := _PART.match(line.text):
            which = part["part"].lower()
            if not nodes or place - begun > _APART or which in nodes[-1].parts:
                nodes.append(_Node("", line))
            begun = place
            nodes[-1].take(which, _items(lines, place, len(part["indent"])))
        elif _PENDING.search(line.text):
            pending = pending or line
        elif nodes and place - begun <= _APART:
            _further(line, nodes[-1])
    nodes = [one for one in nodes if one.status or _complete(one.parts)]
    nodes = [*nodes, *_table(lines)][:MOST_NODES]
    for number, node in enumerate(nodes):
        _say(number, node, into)
    if nodes:
        into.state(ClusterNodes, "nodes[]", None, nodes[0].line)
        asked = pending or nodes[0].line
        into.state(ClusterNodes, "gpus_requested", pending is not None, asked)


def _complete(parts: dict[str, dict[str, int]]) -> bool:
    return len(parts) == 2 and all(items.keys() >= _ALWAYS for items in parts.values())  # noqa: PLR2004


def _items(lines: Sequence[Line], place: int, indent: int) -> dict[str, tuple[int, Line]]:
    found: dict[str, tuple[int, Line]] = {}
    for line in lines[place + 1 : place + _ITEMS]:
        item = _ITEM.match(line.text)
        if item is None or len(item["indent"]) <= indent or line.fence:
            break
        found[item["key"]] = (int(item["value"]), line)
    return found


def _further(line: Line, node: _Node) -> None:
    if _LABELS.search(line.text):
        node.labelled = True
    taint = _TAINT.match(line.text)
    if taint and not node.status:
        node.status, node.line = "notready", line
        node.reason = f"taint node.kubernetes.io/{taint['taint']}"
        return
    silent = _SILENT.match(line.text)
    if silent and not node.status:
        node.status, node.reason, node.line = "notready", silent["said"][:200], line
        return
    ready = _READY.match(line.text)
    if ready:
        node.reason = node.reason if node.status == "notready" else ""
        node.status = "ready" if ready["status"] == "True" else "notready"
        message = _MESSAGE.search(line.text)
        if message and node.status == "notready":
            node.reason, node.line = message["said"][:200], line


def _table(lines: Sequence[Line]) -> list[_Node]:
    """Rows of `kubectl get nodes`."""
    found = []
    inside = False
    for line in lines:
        row = _ROW.match(line.text) if inside else None
        if row:
            node = _Node(row["name"], line)
            node.status = "ready" if row["status"] == "Ready" else "notready"
            found.append(node)
        else:
            inside = bool(_HEADING.match(line.text))
    return found


def _gpus(items: dict[str, int] | None) -> int | None:
    counts = [count for key, count in (items or {}).items() if _GPU.match(key)]
    return sum(counts) if counts else None


def _say(number: int, node: _Node, into: Statements) -> None:
    gpus = _gpus(node.parts.get("capacity"))
    usable = _gpus(node.parts.get("allocatable"))
    whole = _complete(node.parts)
    for field, value in (
        ("names", node.name),
        ("scheduler", "kubernetes"),
        ("states", [node.status or "unknown"]),
        ("planned", False),
        ("responds", node.status != "notready"),
        ("reason", node.reason),
        ("gpus", (gpus or 0) if whole else gpus),
        ("gpus_usable", (usable or 0) if whole else usable),
        ("gpu_labelled", node.labelled),
    ):
        part = {"gpus": "capacity", "gpus_usable": "allocatable"}.get(field, "")
        at = node.rows.get(part, node.line)
        into.state(ClusterNodes, f"nodes.{number}.{field}", value, at)


READER = Reader("kubectl describe node", _read)
