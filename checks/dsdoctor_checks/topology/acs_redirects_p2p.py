"""Bridges between GPUs send their direct transfers up to the processor.

## Why it matters
With Access Control Services on, a PCIe switch does not pass a transfer from one GPU to the next, or
to the network adapter beside it, but sends it up to the root and back. Peer-to-peer copies become
several times slower, and on some machines NCCL hangs.

## What to do
On bare metal switch ACS off: in the BIOS, or by `setpci` for each bridge at boot. In a virtual
machine ACS has to stay on, and nothing is said there.

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
    Missing,
    PciPlace,
    PciTree,
    RunNeeds,
    Scope,
    check,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import chosen, listed

CONDITION = Condition(
    "acs-redirects-p2p",
    id="DSD704",
    scope=Scope.NODE,
    since="0.1",
    leads_to=("nccl-p2p-or-shm-failure",),
)


def _between(one: PciPlace, other: PciPlace) -> set[str]:
    """Bridges below the point that two devices share, which is a switch; none above it."""
    if one.level(other) not in ("PIX", "PXB"):
        return set()
    return set(one.path) ^ set(other.path)


@check(CONDITION)
def switches_pass_transfers(
    tree: PciTree, gpus: Gpus, topology: GpuTopology, run: RunNeeds, env: Environment | Missing
) -> Iterator[Finding]:
    """Judges switches between two GPUs without NVLinks, and between a GPU and an adapter."""
    if tree.virtual:
        yield skip("in a virtual machine Access Control Services have to be on")
        return
    if tree.redirecting is None:
        yield skip("only root may read whether bridges redirect transfers")
        return
    used = [gpu for gpu in chosen(gpus, run, env) if tree.gpu(gpu.pci_bdf) is not None]
    affected: set[str] = set()
    ways: list[str] = []
    for one, other in itertools.combinations(used, 2):
        pair = topology.pair(one.index, other.index)
        here, there = tree.gpu(one.pci_bdf), tree.gpu(other.pci_bdf)
        if here is None or there is None or pair is None or pair.nvlinks or pair.p2p_read != "OK":
            continue
        hit = _between(here, there) & set(tree.redirecting)
        if hit:
            affected |= hit
            ways.append(f"GPU {one.index} and GPU {other.index}")
    for gpu, nic in itertools.product(used, tree.nics):
        place = tree.gpu(gpu.pci_bdf)
        hit = _between(place, nic) & set(tree.redirecting) if place else set()
        if hit:
            affected |= hit
            ways.append(f"GPU {gpu.index} and {nic.name}")
    if not affected:
        yield ok(redirecting=list(tree.redirecting))
        return
    yield warn(
        f"Access Control Services of {listed(sorted(affected))} redirect transfers between "
        f"{ways[0]}{f' and {len(ways) - 1} more pairs' if len(ways) > 1 else ''}, but NCCL expects "
        "them off on bare metal",
        effect="direct transfers go up to the processor and back: slower, and NCCL may hang",
        hint="switch ACS off in the BIOS, or by `setpci` for these bridges",
        bridges=sorted(affected),
        ways=ways,
        more=len(ways) - 1,
    )
