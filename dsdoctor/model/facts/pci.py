"""Facts about the PCI tree: which devices are near each other, and what prevents peer transfers."""

from __future__ import annotations

import msgspec

from dsdoctor.model.facts.base import Fact


class PciPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU or network adapter in the PCI tree.

    Attributes:
        bdf: `0000:1b:00.0`.
        name: `mlx5_0` for an adapter; "" for a GPU.
        root: its host bridge (`pci0000:17`).
        path: bridges above it, the one at the root first.
        numa_node: NUMA node; None = unknown.
        iommu: type of its IOMMU group: `DMA`, `DMA-FQ`, `identity`, …; `unknown` where the kernel
            (before Linux 4.19) reports no type; None = there is no group.
        socket: CPU socket of its NUMA node; None = unknown.
    """

    bdf: str
    name: str = ""
    root: str = ""
    path: tuple[str, ...] = ()
    numa_node: int | None = None
    iommu: str | None = None
    socket: int | None = None

    def level(self, other: PciPlace) -> str:
        """What `nvidia-smi topo -m` prints for the path between two devices.

        >>> a = PciPlace(bdf="0000:18:00.0", root="pci0000:17", path=("0000:17:01.0",))
        >>> b = PciPlace(bdf="0000:19:00.0", root="pci0000:17", path=("0000:17:02.0",))
        >>> a.level(b)
        'PHB'
        """
        if self.root != other.root:
            near = self.numa_node is not None and self.numa_node == other.numa_node
            return "NODE" if near else "SYS"
        shared = 0
        for here, there in zip(self.path, other.path, strict=False):
            if here != there:
                break
            shared += 1
        if not shared:
            return "PHB"
        # a switch is an upstream port and the downstream ports below it
        hops = len(self.path) - shared + len(other.path) - shared
        return "PIX" if hops <= _ONE_SWITCH else "PXB"


#: Bridges off the shared path of two devices below one switch: a downstream port each.
_ONE_SWITCH = 2


class PciTree(Fact, frozen=True, kw_only=True):
    """GPUs and RDMA adapters in the PCI tree.

    Attributes:
        gpus: the GPUs.
        amd: GPUs that the `amdgpu` driver serves.
        nics: adapters of /sys/class/infiniband, one for each function.
        redirecting: bridges above them whose Access Control Services redirect transfers between
            devices to the root complex; None = not readable (only root can read them).
        virtual: this is a virtual machine.
        cpus: numbers of the CPUs that this process may use; empty = unknown.
    """

    gpus: tuple[PciPlace, ...] = ()
    amd: tuple[PciPlace, ...] = ()
    nics: tuple[PciPlace, ...] = ()
    redirecting: tuple[str, ...] | None = None
    virtual: bool = False
    cpus: tuple[int, ...] = ()

    def gpu(self, bdf: str | None) -> PciPlace | None:
        """The GPU at a PCI address."""
        return next((place for place in self.gpus if place.bdf == bdf), None)
