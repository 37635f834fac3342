"""`nvidia-smi topo` (`-m`, `-mp`, `-p2p r`): how GPUs reach each other.

Source: `nvidia-smi topo -h` of drivers 450 to 580; nvml.h, nvmlGpuP2PStatus_t.
"""

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
#: Its matrix of what the driver allows; only the command says for which kind of access.
_ACCESS = re.compile(r"\btopo\b.*\s(?:-p2p|--p2pstatus)[ =]?(?P<kind>[rwn])\b")
_KINDS = {"r": "p2p_read", "w": "p2p_write", "n": "p2p_nvlink"}
#: NVML's names (nvmlGpuP2PStatus_t) of the words in its legend.
_STATES = {
    "OK": "OK",
    "CNS": "CHIPSET_NOT_SUPPORTED",
    "GNS": "GPU_NOT_SUPPORTED",
    "TNS": "IOH_TOPOLOGY_NOT_SUPPORTED",
    "DR": "DISABLED_BY_REGKEY",
    "NS": "NOT_SUPPORTED",
    "U": "UNKNOWN",
}
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
    matrices: list[_Matrix] = []
    for place, line in enumerate(lines):
        if _HEAD.match(line.text):
            found = _matrix(lines, place)
            if found is not None:
                into.recognized()
                matrices.append(found)
    main = [one for one in matrices if not (one.access or one.without_nvlinks)]
    for one in main or [each for each in matrices if each.without_nvlinks][:1] or matrices[:1]:
        one.add_of([other for other in matrices if other not in main])
        _state(one, into)


class _Matrix:
    """What a matrix says of the pairs of its GPUs.

    Attributes:
        head: its first line.
        whole: whether no row was cut off.
        count: number of its GPUs.
        without_nvlinks: the command left them out, so where GPUs have some is not known.
        access: whether it is of what the driver allows.
        pairs: the fields of each pair; none for an access of an unknown kind.
    """

    def __init__(self, head: Line, count: int, rows: list[list[str]], command: str) -> None:
        self.head = head
        self.count = count
        self.whole = len(rows) == count
        self.without_nvlinks = _WITHOUT_NVLINKS.search(command) is not None
        cells = {cell for row in rows for cell in row} - {"X"}
        self.access = cells <= _STATES.keys()
        found = _ACCESS.search(command)
        self.pairs = [
            self._fields(a, b, rows[a][b], _KINDS[found["kind"]] if found else "")
            for a in range(len(rows))
            for b in range(a + 1, count)
        ]

    def _fields(self, a: int, b: int, cell: str, kind: str) -> dict[str, Any]:
        ends: dict[str, Any] = {"a": a, "b": b}
        if self.access:
            return ends | ({kind: _STATES[cell]} if kind else {})
        if cell.startswith("NV"):
            return ends | {"nvlinks": int(cell[2:])}
        known = {} if self.without_nvlinks else {"nvlinks": 0}
        return ends | known | {"ancestor": _ANCESTORS[cell]}

    def add_of(self, others: Sequence[_Matrix]) -> None:
        """Adds what other matrices say of the same pairs, if they do not contradict this one."""
        for other in others:
            if other is self or not (self.whole and other.whole and self.count == other.count):
                continue
            both = [(one, two) for one, two in zip(self.pairs, other.pairs, strict=True)]
            if all(one.get(key, value) == value for one, two in both for key, value in two.items()):
                self.pairs = [two | one for one, two in both]


def _matrix(lines: Sequence[Line], place: int) -> _Matrix | None:
    """The matrix below a head, if its rows agree with each other."""
    count = 0
    for word in lines[place].text.split():
        if word != f"GPU{count}":
            break
        count += 1
    if count == 1:
        return None  # a single GPU has no pair
    rows: list[list[str]] = []
    for line in lines[place + 1 : place + 1 + count]:
        words = line.text.split()
        if len(words) <= count or words[0] != f"GPU{len(rows)}":
            break
        cells = words[1 : count + 1]
        if cells[len(rows)] != "X" or not _are_of_one_kind(cells):
            break
        rows.append(cells)
    known = range(len(rows))
    if not rows or not _are_of_one_kind([cell for row in rows for cell in row]):
        return None
    if any(rows[a][b] != rows[b][a] for a in known for b in range(a)):
        return None
    above = "\n".join(other.text for other in lines[max(0, place - 3) : place])
    return _Matrix(lines[place], count, rows, above)


def _are_of_one_kind(cells: Sequence[str]) -> bool:
    return all(_CELL.match(cell) for cell in cells) or set(cells) <= {"X", *_STATES}


def _state(matrix: _Matrix, into: Statements) -> None:
    if matrix.whole:
        for number, pair in enumerate(matrix.pairs):  # of a matrix that was cut off
            for field in pair:
                into.withdraw(GpuTopology, f"pairs.{number}.{field}", into.reader)
        into.state(GpuTopology, "pairs", matrix.pairs, matrix.head)
        _whole_list(matrix.count, matrix.head, into)
        return
    if into.states(GpuTopology, "pairs"):
        return  # in a whole matrix
    for number, pair in enumerate(matrix.pairs):  # the matrix was cut off
        for field, value in pair.items():
            into.state(GpuTopology, f"pairs.{number}.{field}", value, matrix.head)


def _whole_list(count: int, line: Line, into: Statements) -> None:
    """States that the GPUs listed elsewhere are complete, if the matrix has as many."""
    listed = [into.states(Gpus, f"gpus.{number}.index") for number in range(count + 1)]
    if listed == [*[True] * count, False] and not into.states(Gpus, "count"):
        into.state(Gpus, "gpus[]", None, line)
        into.state(Gpus, "count", count, line)
        into.state(Gpus, "stopped_at", None, line)


READER = Reader("nvidia-smi topo", _read)
