"""GPUs, pairs and PCI trees for the tests of this family."""

from __future__ import annotations

from dsdoctor.api import Gpu, Gpus, GpuTopology, PciPlace, PciTree
from dsdoctor.model.facts.gpu import GpuPair

LEVELS = {"PIX": "SINGLE", "PXB": "MULTIPLE", "PHB": "HOSTBRIDGE", "NODE": "NODE", "SYS": "SYSTEM"}


def bdf(index: int) -> str:
    return f"0000:{0x18 + index:02x}:00.0"


def gpus(count: int, name: str = "NVIDIA A40", **first: object) -> Gpus:
    """`count` free GPUs of a kind; `first` changes GPU 0."""
    more: dict[str, object]
    found = []
    for index in range(count):
        more = first if index == 0 else {}
        fields = {
            "name": name,
            "pci_bdf": bdf(index),
            "memory_total_bytes": 48 << 30,
            "memory_used_bytes": 0,
        }
        found.append(Gpu(index=index, **{**fields, **more}))  # type: ignore[arg-type]
    return Gpus(gpus=tuple(found), count=count)


def topology(matrix: str, p2p: str = "OK") -> GpuTopology:
    """Pairs from the rows of `nvidia-smi topo -m`: `X NV4 SYS`, one line for each GPU."""
    rows = [line.split() for line in matrix.strip().splitlines()]
    pairs = []
    for a, row in enumerate(rows):
        for b in range(a + 1, len(rows)):
            label = row[b]
            links = int(label[2:]) if label.startswith("NV") else 0
            pairs.append(
                GpuPair(
                    a=a,
                    b=b,
                    nvlinks=links,
                    ancestor=LEVELS.get(label, "SYSTEM"),
                    p2p_read=p2p,
                    p2p_write=p2p,
                )
            )
    return GpuTopology(pairs=tuple(pairs))


def switch(*names: str, redirecting: tuple[str, ...] | None = (), **more: object) -> PciTree:
    """GPUs, and adapters by their names, behind one PCIe switch."""
    up = ("0000:15:01.0", "0000:16:00.0")
    iommu = str(more.get("iommu") or "") or None

    def place(index: int, name: str) -> PciPlace:
        port = f"0000:17:{index:02x}.0"
        return PciPlace(
            bdf=bdf(index), name=name, root="pci0000:15", path=(*up, port), numa_node=0, iommu=iommu
        )

    places = [place(index, "" if name == "gpu" else name) for index, name in enumerate(names)]
    return PciTree(
        gpus=tuple(one for one in places if not one.name),
        nics=tuple(one for one in places if one.name),
        redirecting=redirecting,
        virtual=bool(more.get("virtual")),
        cpus=(0, 1, 2, 3),
    )
