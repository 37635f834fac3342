"""PCIe Access Control Services redirect direct GPU transfers through the CPU.

## Why it matters
With Access Control Services (ACS) enabled, a PCIe bridge does not forward a transfer to the next GPU
or network adapter, but sends it up to the root complex and back. Peer-to-peer copies become several
times slower, and on some machines NCCL hangs. On root ports this matters while the IOMMU translates
addresses, also between two host bridges of one NUMA node, as AMD's CPUs have them.

## What to do
On bare metal, disable ACS in the BIOS, or with `setpci` for each bridge at boot. A virtual machine
needs ACS, so the check is skipped there.

## References
- https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html (PCI Access Control
  Services)
- PCI Express base specification 5.0, 7.7.8 (the control register)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    GpuTopology,
    Level,
    Missing,
    PciPlace,
    PciTree,
    RunNeeds,
    Scope,
    Signature,
    check,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import amount, chosen, listed

CONDITION = Condition(
    "acs-redirects-p2p",
    id="DSD704",
    scope=Scope.NODE,
    since="0.1",
    leads_to=("nccl-intra-node-transport-failed",),
)

#: Types of IOMMU groups that translate, or may.
_TRANSLATING = {"DMA", "DMA-FQ", "unknown"}


def _bridges_between(one: PciPlace, other: PciPlace) -> set[str]:
    """Bridges whose ACS affects the transfers between two devices.

    Below a shared switch these are the bridges on the way to it. For two GPUs under one host bridge,
    or under two of one NUMA node, they are the root ports, which forward to the root complex in any
    case: there, ACS matters only while the IOMMU translates. Linux before 4.19 does not report
    whether it does. Adapters at that distance do not count, because NCCL uses no GPUDirect RDMA
    across a host bridge by default.
    """
    level = one.level(other)
    if level in ("PIX", "PXB"):
        return set(one.path) ^ set(other.path)
    at_root = level in ("PHB", "NODE") and one.path and other.path and not other.name
    if at_root and {one.iommu, other.iommu} <= _TRANSLATING:
        return {one.path[0], other.path[0]}
    return set()


@check(CONDITION)
def switches_pass_transfers(
    tree: PciTree, gpus: Gpus, topology: GpuTopology, run: RunNeeds, env: Environment | Missing
) -> Iterator[Finding]:
    """Judges the bridges between two GPUs without NVLinks, and between a GPU and an adapter."""
    if tree.virtual:
        yield skip("a virtual machine needs Access Control Services")
        return
    if tree.redirecting is None:
        yield skip("only root can read whether bridges redirect transfers")
        return
    used = [gpu for gpu in chosen(gpus, run, env) if tree.gpu(gpu.pci_bdf) is not None]
    affected: set[str] = set()
    ways: list[str] = []
    for one, other in itertools.combinations(used, 2):
        pair = topology.pair(one.index, other.index)
        here, there = tree.gpu(one.pci_bdf), tree.gpu(other.pci_bdf)
        if here is None or there is None or pair is None or pair.nvlinks or pair.p2p_read != "OK":
            continue
        hit = _bridges_between(here, there) & set(tree.redirecting)
        if hit:
            affected |= hit
            ways.append(f"GPU {one.index} and GPU {other.index}")
    for gpu, nic in itertools.product(used, tree.nics):
        place = tree.gpu(gpu.pci_bdf)
        hit = _bridges_between(place, nic) & set(tree.redirecting) if place else set()
        if hit:
            affected |= hit
            ways.append(f"GPU {gpu.index} and {nic.name}")
    if not affected:
        yield ok(redirecting=list(tree.redirecting))
        return
    more = f" and {amount(len(ways) - 1, 'more pair')}" if len(ways) > 1 else ""
    yield warn(
        f"Access Control Services on {listed(sorted(affected))} redirect transfers between "
        f"{ways[0]}{more}, but should be "
        "disabled on bare metal",
        effect="direct transfers take a detour through the CPU: they are slower, and NCCL may hang",
        hint="disable ACS in the BIOS, or with `setpci` on these bridges",
        bridges=sorted(affected),
        ways=ways,
        more=len(ways) - 1,
    )


HINT = "on bare metal, disable ACS in the BIOS, or with `setpci` on the bridges above the GPUs"

SIGNATURES = (
    Signature(
        # what people print because NCCL's documentation tells how; most bridges have it enabled
        # where the IOMMU is, so it is no more than a hint, and only beside NCCL
        pattern=r"\bACSCtl:.{0,60}\bReqRedir\+",
        source="pciutils 3.5-3.13 ls-ecaps.c, cap_acs",
        message="Access Control Services of a PCIe bridge redirect transfers, which slows or hangs NCCL between GPUs",
        examples=(
            "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-",
        ),
        not_examples=(
            "\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-",
        ),
        requires=(
            "NCCL_P2P_DISABLE",
            "all_reduce_perf",
            "ncclAllReduce",
            "p2pBandwidthLatencyTest",
        ),
        level=Level.HINT,
    ),
)
