"""The IOMMU translates direct transfers between GPUs.

## Why it matters
If the IOMMU translates addresses, transfers between two GPUs over PCIe pass through it. That is slower
at best; on some boards, transfers are corrupted or hang at NCCL's first collective. GPUs connected by
NVLink, or without peer access, are not affected.

## What to do
On bare metal, boot with `iommu=pt` (pass-through), or disable the IOMMU in the BIOS. A virtual machine
needs it, so the check is skipped there.

## References
- https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html (PCI Access Control
  Services: virtual machines and IOMMU)
- Linux Documentation/ABI/testing/sysfs-kernel-iommu_groups (`type`)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpu,
    Gpus,
    GpuTopology,
    Level,
    Missing,
    PciTree,
    RunNeeds,
    Scope,
    Signature,
    check,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import chosen

CONDITION = Condition(
    "iommu-between-gpus",
    id="DSD705",
    scope=Scope.NODE,
    since="0.1",
    leads_to=("nccl-intra-node-transport-failed",),
)

TRANSLATING = ("DMA", "DMA-FQ")


def _translated(tree: PciTree, gpu: Gpu) -> bool:
    place = tree.gpu(gpu.pci_bdf)
    return place is not None and place.iommu in TRANSLATING


@check(CONDITION)
def transfers_are_direct(
    tree: PciTree, gpus: Gpus, topology: GpuTopology, run: RunNeeds, env: Environment | Missing
) -> Iterator[Finding]:
    """Judges pairs that have peer access over PCIe, as the driver reports it."""
    if tree.virtual:
        yield skip("in a virtual machine, the host controls the IOMMU")
        return
    used = {gpu.index: gpu for gpu in chosen(gpus, run, env)}
    pairs = [
        pair
        for pair in topology.pairs
        if {pair.a, pair.b} <= used.keys()
        and pair.nvlinks == 0
        and pair.p2p_read == pair.p2p_write == "OK"
        and _translated(tree, used[pair.a])
        and _translated(tree, used[pair.b])
    ]
    if not pairs:
        yield ok()
        return
    first = pairs[0]
    kind = next(place.iommu for place in tree.gpus if place.iommu in TRANSLATING)
    more = f" and {len(pairs) - 1} more pairs" if len(pairs) > 1 else ""
    yield warn(
        f"GPUs {first.a} and {first.b}{more} have peer access over PCIe, but the IOMMU translates "
        f"their addresses (`{kind}`)",
        effect="transfers between them are slow, and on some boards hang or corrupt data",
        hint="add `iommu=pt` to the kernel command line and reboot",
        pairs=[[pair.a, pair.b] for pair in pairs],
        more=len(pairs) - 1,
        iommu=kind,
    )


HINT = "add `iommu=pt` to the kernel command line and reboot"

SIGNATURES = (
    Signature(
        pattern=r"NCCL WARN Missing \"iommu=pt\" from kernel command line",
        source="RCCL 2.16-2.30 src/init.cc; also logged by runs that succeed",
        message="RCCL misses `iommu=pt` on the kernel command line, without which several AMD GPUs"
        " may hang",
        examples=(
            'n1:9:9 [0] src/init.cc:120 NCCL WARN Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!',
        ),
        level=Level.HINT,
    ),
)
