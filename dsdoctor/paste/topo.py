"""`nvidia-smi topo -m`: how GPUs reach each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dsdoctor.model.facts.gpu import Gpus, GpuTopology
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_HEAD = re.compile(r"\s*GPU0\s+(?:GPU1|CPU Affinity|NIC0|mlx5_0)\b")
#: `-mp` leaves NVLinks out, and its matrix then looks like one of GPUs without them.
_WITHOUT_NVLINKS = re.compile(r"\btopo\b.*(?:\s-mp\b|--matrix_pci\b)")
_CELL = re.compile(r"(?:X|NV\d{1,2}|PIX|PXB|PSB|PHB|NODE|SYS|SOC)$")
_ANCESTORS = {
    "PIX": "SINGLE",
    "PSB": "INTERNAL",
    "PXB": "MULTIPLE",
    "PHB": "HOSTBRIDGE",
    "NODE": "NODE",
    "SYS": "SYSTEM",
    "SOC": "SYSTEM",
}


def _read(lines: Sequence[Line], into: Statements) -> None:
    for place, line in enumerate(lines):
        above = (other.text for other in lines[max(0, place - 3) : place])
        if _HEAD.match(line.text) and not any(map(_WITHOUT_NVLINKS.search, above)):
            _matrix(lines, place, into)


def _matrix(lines: Sequence[Line], place: int, into: Statements) -> None:
    """States the pairs in the rows, if they agree with each other."""
    count = 0
    for word in lines[place].text.split():
        if word != f"GPU{count}":
            break
        count += 1
    if count == 1:
        return  # a single GPU has no pair
    rows: list[list[str]] = []
    for line in lines[place + 1 : place + 1 + count]:
        words = line.text.split()
        if len(words) <= count or words[0] != f"GPU{len(rows)}":
            break
        cells = words[1 : count + 1]
        if not all(_CELL.match(cell) for cell in cells) or cells[len(rows)] != "X":
            break
        rows.append(cells)
    known = range(len(rows))
    if not rows or any(rows[a][b] != rows[b][a] for a in known for b in range(a)):
        return
    pairs = [_pair(a, b, rows[a][b]) for a in known for b in range(a + 1, count)]
    if len(rows) == count:
        for number, pair in enumerate(pairs):  # of a matrix that was cut off
            for field in pair:
                into.withdraw(GpuTopology, f"pairs.{number}.{field}", into.reader)
        into.state(GpuTopology, "pairs", pairs, lines[place])
        _whole_list(count, lines[place], into)
        return
    if into.states(GpuTopology, "pairs"):
        return  # in a whole matrix
    for number, pair in enumerate(pairs):  # the matrix was cut off
        for field, value in pair.items():
            into.state(GpuTopology, f"pairs.{number}.{field}", value, lines[place])


def _whole_list(count: int, line: Line, into: Statements) -> None:
    """States that the GPUs listed elsewhere are complete, if the matrix has as many."""
    listed = [into.states(Gpus, f"gpus.{number}.index") for number in range(count + 1)]
    if listed == [*[True] * count, False] and not into.states(Gpus, "count"):
        into.state(Gpus, "gpus[]", None, line)
        into.state(Gpus, "count", count, line)
        into.state(Gpus, "stopped_at", None, line)


def _pair(a: int, b: int, cell: str) -> dict[str, Any]:
    if cell.startswith("NV"):
        return {"a": a, "b": b, "nvlinks": int(cell[2:])}
    return {"a": a, "b": b, "nvlinks": 0, "ancestor": _ANCESTORS[cell]}


READER = Reader("nvidia-smi topo", _read)
