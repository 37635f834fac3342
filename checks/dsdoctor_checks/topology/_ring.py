"""Which ring NCCL could build over a set of GPUs, and how good its worst hop is.

A collective is as fast as the slowest hop of its ring. Hops rank by their number of NVLinks, then by
PCIe level in NCCL's order (src/graph/topo.h: PIX, PXB, PHB, SYS).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from dsdoctor.api import GpuTopology

_LEVELS = {"PIX": 60, "INTERNAL": 60, "PXB": 50, "PHB": 40, "NODE": 30, "SYS": 20}
_NVLINK = 100
#: Limit on the sets that are tried: C(16, 8) is 12,870, each with its own rings.
MOST_SETS = 2000
#: Larger sets are not searched: their GPUs are taken in the order given.
MOST_GPUS = 8


def rank(label: str | None) -> int:
    """How good a hop is; 0 = unknown.

    >>> rank("NV18") > rank("NV4") > rank("PIX") > rank("SYS") > rank(None)
    True
    """
    if label is None:
        return 0
    if label.startswith("NV") and label[2:].isdecimal():
        return _NVLINK + int(label[2:])
    return _LEVELS.get(label, 0)


def hop(topology: GpuTopology, a: int, b: int) -> str | None:
    """The connection of two GPUs as `nvidia-smi topo -m` prints it."""
    pair = topology.pair(a, b)
    return pair.label if pair else None


def best_ring(topology: GpuTopology, gpus: Sequence[int]) -> tuple[tuple[int, ...], str | None]:
    """The order with the best worst hop, and that hop."""
    first, *rest = gpus
    if len(gpus) > MOST_GPUS:
        orders: Iterable[tuple[int, ...]] = [tuple(gpus)]
    else:
        # a ring has no direction: one of each order and its reverse is enough
        orders = (
            (first, *order)
            for order in itertools.permutations(rest)
            if len(order) < 2 or order[0] < order[-1]  # noqa: PLR2004
        )
    best: tuple[int, ...] = tuple(gpus)
    worst: str | None = None
    score = -1
    labels = {(a, b): hop(topology, a, b) for a in gpus for b in gpus}
    ranks = {ends: rank(label) for ends, label in labels.items()}
    limit = max((value for (a, b), value in ranks.items() if a != b), default=-1)
    for order in orders:
        ends = list(zip(order, (*order[1:], order[0]), strict=True))
        lowest = min(ends, key=ranks.__getitem__)
        if ranks[lowest] > score:
            best, worst, score = order, labels[lowest], ranks[lowest]
        if score >= limit:
            break  # no ring is better than the best pair
    return best, worst


def better_set(
    topology: GpuTopology, chosen: Sequence[int], free: Sequence[int]
) -> tuple[tuple[int, ...], str] | None:
    """An equally large set of free GPUs with a better worst hop; None if there is none."""
    if len(chosen) > MOST_GPUS // 2 and len(chosen) != len(free):
        return None  # half of a big node or more: not searched
    _, have = best_ring(topology, chosen)
    if have is None:
        return None
    found: tuple[tuple[int, ...], str] | None = None
    score = rank(have)
    for group in itertools.islice(itertools.combinations(free, len(chosen)), MOST_SETS):
        _, worst = best_ring(topology, group)
        if worst is not None and rank(worst) > score:
            found, score = (group, worst), rank(worst)
    return found
