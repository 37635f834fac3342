"""Rebuilds the matrix that `nvidia-smi topo -m` prints from NVML and sysfs."""

from __future__ import annotations

from collections.abc import Iterable

from dsdoctor.model.facts.base import Missing
from dsdoctor.model.facts.gpu import Gpu, Gpus, GpuTopology
from dsdoctor.model.facts.pci import PciTree
from dsdoctor.model.matrix import Matrix

#: Fewer devices have no path between them.
SEVERAL = 2
UNKNOWN = "?"


def ranges(numbers: Iterable[int]) -> str:
    """Numbers as ranges.

    >>> ranges([0, 1, 2, 8, 10, 11])
    '0-2,8,10-11'
    """
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in spans)


def build(
    gpus: Gpus | Missing, topology: GpuTopology | Missing, tree: PciTree | Missing
) -> Matrix | None:
    """The matrix, None if there are not two devices."""
    if isinstance(gpus, Missing) or isinstance(topology, Missing):
        return None
    nics = () if isinstance(tree, Missing) else tree.nics
    if len(gpus.gpus) + len(nics) < SEVERAL or not gpus.gpus:
        return None
    rows = []
    for one in gpus.gpus:
        row = ["X" if one is other else _pair(topology, one, other) for other in gpus.gpus]
        rows.append(row + [_to_nic(tree, one, index) for index in range(len(nics))])
    for index, nic in enumerate(nics):
        row = [_to_nic(tree, gpu, index) for gpu in gpus.gpus]
        rows.append(row + ["X" if nic is other else nic.level(other) for other in nics])
    return Matrix(
        names=[f"GPU{_text(gpu.index) or '?'}" for gpu in gpus.gpus] + [nic.name for nic in nics],
        rows=rows,
        cpus=[ranges(gpu.cpu_affinity or ()) for gpu in gpus.gpus] + ["" for _ in nics],
        numa=[_text(gpu.numa_node) for gpu in gpus.gpus] + [_text(nic.numa_node) for nic in nics],
    )


def _text(number: int | None) -> str:
    return "" if number is None else str(number)


def _pair(topology: GpuTopology, one: Gpu, other: Gpu) -> str:
    if None in (one.index, other.index):  # a paste may name a lost GPU by its address alone
        return UNKNOWN
    pair = topology.pair(one.index, other.index)
    return (pair.label if pair else None) or UNKNOWN


def _to_nic(tree: PciTree | Missing, gpu: Gpu, index: int) -> str:
    if isinstance(tree, Missing):
        return UNKNOWN
    place = tree.gpu(gpu.pci_bdf)
    return UNKNOWN if place is None else place.level(tree.nics[index])
