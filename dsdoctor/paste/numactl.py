"""`numactl --hardware`: memory and CPUs of all NUMA nodes.

Source: numactl 2.0.9 to 2.0.19, numactl.c `hardware`; its MB are MiB. Read 2026-11-28.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.launch import Numactl
from dsdoctor.model.facts.machine import Resources
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements
from dsdoctor.probes.numactl import BINDS, NO_NUMA

_HEAD = re.compile(r"\s*available:\s+(?P<nodes>\d{1,3})\s+nodes?\s+\(")
_CPUS = re.compile(r"\s*node\s+(?P<node>\d{1,3})\s+cpus:(?P<cpus>[\d ]*)$")
_SIZE = re.compile(r"\s*node\s+(?P<node>\d{1,3})\s+size:\s+(?P<mib>\d{1,9})\s+MB\s*$")
_FREE = re.compile(r"\s*node\s+\d{1,3}\s+free:\s+\d{1,9}\s+MB\s*$")
_NO_NUMA = re.compile(rf"\s*(?P<words>{'|'.join(NO_NUMA)})\s*\.?$")
_LONGEST = 400


def _read(lines: Sequence[Line], into: Statements) -> None:
    binds = any(BINDS in line.text for line in lines)
    for place, line in enumerate(lines):
        head, none = _HEAD.match(line.text), _NO_NUMA.match(line.text)
        if head:
            _nodes(lines[place + 1 : place + _LONGEST], int(head["nodes"]), line, into)
        elif none and binds:
            into.state(Numactl, "error", none["words"], line)
            into.state(Numactl, "path", "numactl", line)
            into.state(Numactl, "binds", True, line)


def _nodes(lines: Sequence[Line], count: int, head: Line, into: Statements) -> None:
    """States sums only of a list that is complete."""
    sizes: dict[str, int] = {}
    processors: dict[str, int] = {}
    for line in lines:
        listed, size = _CPUS.match(line.text), _SIZE.match(line.text)
        if listed:
            processors[listed["node"]] = len(listed["cpus"].split())
        elif size:
            sizes[size["node"]] = int(size["mib"]) << 20
        elif not _FREE.match(line.text):
            break
    if len(sizes) == len(processors) == count:
        into.state(Resources, "memory_total_bytes", sum(sizes.values()), head)
        into.state(Resources, "cpus_logical", sum(processors.values()), head)


READER = Reader("numactl", _read)
