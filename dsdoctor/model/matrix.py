"""The matrix that `nvidia-smi topo -m` prints, as a report keeps it."""

from __future__ import annotations

import msgspec


class Matrix(msgspec.Struct, kw_only=True):
    """How the devices of a node reach each other.

    Attributes:
        names: `GPU0`, …, then RDMA adapters by name.
        rows: one for each name: `X` for itself, else `NV18`, `PIX`, … or `?`.
        cpus: CPUs near each GPU, as ranges; "" for what is not reported and for adapters.
        numa: NUMA node of each device, as text.
    """

    names: list[str]
    rows: list[list[str]]
    cpus: list[str]
    numa: list[str]
