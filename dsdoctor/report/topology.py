"""The matrix of a node's topology, as text."""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.model.matrix import Matrix

LEGEND = (
    "NV# = that many NVLinks; PIX = one PCIe switch; PXB = several; PHB = the host bridge; "
    "NODE = within a NUMA node; SYS = between NUMA nodes"
)


def _table(matrix: Matrix, *, places: bool) -> list[str]:
    header = ["", *matrix.names, *(["CPUs", "NUMA"] if places else [])]
    table = [header]
    rows = zip(matrix.names, matrix.rows, matrix.cpus, matrix.numa, strict=True)
    for name, row, cpus, numa in rows:
        table.append([name, *row, *([cpus, numa] if places else [])])
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]


def lines(matrix: Matrix, width: int) -> Iterator[str]:
    """The matrix as a table, narrower without the places, or pair by pair where it does not fit."""
    for places in (True, False):
        table = _table(matrix, places=places)
        if max(len(line) for line in table) <= width:
            yield from table
            return
    for index, name in enumerate(matrix.names):
        for other in range(index + 1, len(matrix.names)):
            yield f"{name}-{matrix.names[other]}: {matrix.rows[index][other]}"
