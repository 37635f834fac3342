"""The matrix of a node's topology, as text."""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.model.matrix import Matrix

LEGEND = (
    "NV# = that many NVLinks; PIX = one PCIe switch; PXB = several; PHB = the host bridge; "
    "NODE = within a NUMA node; SYS = between NUMA nodes"
)


#: Blocks of fewer columns than this are harder to read than pairs.
MIN_COLUMNS = 4
GAP = "  "


def _columns(matrix: Matrix) -> list[list[str]]:
    """The columns with their headings; columns without any reported value are left out."""
    columns = [
        [name, *(row[number] for row in matrix.rows)] for number, name in enumerate(matrix.names)
    ]
    places = [["CPUs", *matrix.cpus], ["NUMA", *matrix.numa]]
    return columns + [column for column in places if any(column[1:])]


def _printed(columns: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in columns]
    rows = zip(*columns, strict=True)
    return [
        GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _blocks(matrix: Matrix, width: int) -> list[list[str]] | None:
    """The table, split into as few blocks of columns as fit; None if those would be too narrow."""
    names = ["", *matrix.names]
    columns = _columns(matrix)
    blocks: list[list[list[str]]] = [[]]
    for column in columns:
        if blocks[-1] and len(max(_printed([names, *blocks[-1], column]), key=len)) > width:
            blocks.append([])
        blocks[-1].append(column)
    printed = [_printed([names, *block]) for block in blocks]
    narrow = len(blocks[0]) < min(MIN_COLUMNS, len(columns))
    if narrow or max(len(line) for block in printed for line in block) > width:
        return None
    return printed


def lines(matrix: Matrix, width: int) -> Iterator[str]:
    """The matrix as a table, in blocks of columns if it is too wide, or as a list of pairs."""
    blocks = _blocks(matrix, width)
    if blocks is not None:
        for number, block in enumerate(blocks):
            if number:
                yield ""
            yield from block
        return
    for index, name in enumerate(matrix.names):
        for other in range(index + 1, len(matrix.names)):
            yield f"{name}-{matrix.names[other]}: {matrix.rows[index][other]}"
