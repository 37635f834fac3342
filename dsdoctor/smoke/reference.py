"""Published bus bandwidth of all-reduce by product: a table with sources and dates."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

#: Below this share of a reference, a run gets a warning, never a failure.
BAND = 0.95
#: References were measured with buffers of at least this size; smaller ones reach far less.
COMPARABLE_BYTES = 1 << 30

_AZURE = "floor of Azure/azurehpc-health-checks at 0e0a1ac"
_ENGINEERING = "stas00/ml-engineering at 744d01e"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reference:
    """What GPUs of one product should reach together, in one host.

    Attributes:
        product: part of the name that the driver reports.
        count: number of GPUs.
        gb_per_s: bus bandwidth of all-reduce (nccl-tests doc/PERFORMANCE.md), 1e9 bytes a second.
        source: who measured or requires it.
        verified: driver and date of our own measurement; empty = not verified.
    """

    product: str
    count: int
    gb_per_s: float
    source: str
    verified: str = ""

    @property
    def words(self) -> str:
        """The reference as text."""
        known = f"verified with {self.verified}" if self.verified else "not verified by dsdoctor"
        return f"{self.gb_per_s:g} GB/s for {self.count} × {self.product} ({self.source}; {known})"


#: Read on 2026-11-21.
REFERENCES = (
    Reference(product="V100-SXM2", count=8, gb_per_s=110, source=f"{_AZURE}, ND40rs_v2"),
    Reference(product="A100-SXM4", count=8, gb_per_s=228, source=f"{_AZURE}, NDv4"),
    Reference(product="A100 80GB PCIe", count=2, gb_per_s=193, source=f"{_AZURE}, NC48ads"),
    Reference(product="A100 80GB PCIe", count=4, gb_per_s=25, source=f"{_AZURE}, NC96ads"),
    Reference(product="H100 80GB HBM3", count=8, gb_per_s=460, source=f"{_AZURE}, ND H100 v5"),
    Reference(product="H100 NVL", count=2, gb_per_s=208, source=f"{_AZURE}, NC80adis"),
    Reference(product="H200", count=8, gb_per_s=431, source=f"{_AZURE}"),
    Reference(product="B200", count=8, gb_per_s=682, source=f"{_ENGINEERING}, ring"),
)


def find(products: Sequence[str], nodes: int) -> Reference | None:
    """The reference for GPUs with these names, one name per GPU; None if there is none.

    >>> find(["NVIDIA H200"] * 8, 1).gb_per_s
    431
    >>> find(["NVIDIA H200"] * 4, 1) is find(["NVIDIA H200"] * 8, 2) is None
    True
    >>> find(["NVIDIA GB200"] * 8, 1) is None
    True
    """
    if nodes != 1 or len(set(products)) != 1:
        return None
    name = products[0].removeprefix("NVIDIA ").removeprefix("Tesla ")
    for row in REFERENCES:
        # `A100-SXM4-40GB` and `-80GB` are one product here, `GH200` and `H200` are two
        if len(products) == row.count and (name + "-").startswith(row.product + "-"):
            return row
    return None


def below(measured: float, wanted: Reference) -> str | None:
    """The warning about a bandwidth below the band; None for one within it."""
    if measured >= BAND * wanted.gb_per_s:
        return None
    share = 1 - measured / wanted.gb_per_s
    return (
        f"all-reduce reached {measured:.1f} GB/s in the better of two series, {share:.0%} below "
        f"the reference of {wanted.words}"
    )
