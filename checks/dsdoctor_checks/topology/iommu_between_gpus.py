"""The IOMMU translates direct transfers between GPUs.

## Why it matters
If the IOMMU translates addresses, transfers between two GPUs over PCIe pass through it. That is slower
at best; on some boards, transfers are corrupted or hang at NCCL's first collective. GPUs connected by
NVLink, or without peer access, are not affected. AMD asks for pass-through wherever several of its GPUs work
together; RCCL warns at every start without it.

## What to do
On bare metal, boot with `iommu=pt` (pass-through), or disable the IOMMU in the BIOS. A virtual machine
needs it, so the check is skipped there.

## References
- https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html (PCI Access Control
  Services: virtual machines and IOMMU)
- RCCL 2.22 src/init.cc; https://rocm.docs.amd.com/en/latest/how-to/system-optimization/
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
    LaunchCommand,
    Level,
    Missing,
    PciTree,
    RunNeeds,
    Scope,
    Signature,
    Status,
    TorchBuild,
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
SEVERAL = 2


def _translated(tree: PciTree, gpu: Gpu) -> bool:
    place = tree.gpu(gpu.pci_bdf)
    return place is not None and place.iommu in TRANSLATING


@check(CONDITION)
def transfers_are_direct(
    tree: PciTree,
    gpus: Gpus | Missing,
    topology: GpuTopology | Missing,
    run: RunNeeds,
    env: Environment | Missing,
    torch: TorchBuild | Missing,
    command: LaunchCommand | Missing,
) -> Iterator[Finding]:
    """Judges pairs that have peer access over PCIe, as NVIDIA's driver reports it, and AMD GPUs."""
    if tree.virtual:
        yield skip("in a virtual machine, the host controls the IOMMU")
        return
    if _amd_ranks(torch, run, command) >= SEVERAL:
        yield _between_amd_gpus(tree)
        return
    if isinstance(gpus, Missing):
        yield _not_read(gpus, Gpus.key())
        return
    if isinstance(topology, Missing):
        yield _not_read(topology, GpuTopology.key())
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
        hint=HINT,
        pairs=[[pair.a, pair.b] for pair in pairs],
        more=len(pairs) - 1,
        iommu=kind,
    )


def _not_read(fact: Missing, key: str) -> Finding:
    status = Status.UNKNOWN if fact.is_unknown else Status.SKIP
    return Finding(status=status, message=fact.detail, evidence={"fact": key})


def _amd_ranks(torch: TorchBuild | Missing, run: RunNeeds, command: LaunchCommand | Missing) -> int:
    """Ranks that the run starts on AMD GPUs of this node, as far as it says so."""
    if isinstance(torch, Missing) or torch.hip is None:
        return 0
    ranks = 0 if isinstance(command, Missing) else command.num_gpus or 0
    return max(len(run.gpus), run.expect_gpus or 0, ranks)


def _between_amd_gpus(tree: PciTree) -> Finding:
    behind = [place for place in tree.amd if place.iommu in TRANSLATING]
    if len(behind) < SEVERAL:
        return ok(amd=len(tree.amd))
    return warn(
        f"the IOMMU translates the addresses of {len(behind)} AMD GPUs (`{behind[0].iommu}`), which"
        " several ranks would use",
        effect="transfers between them are slow, and on some boards hang or corrupt data",
        hint=HINT,
        gpus=[place.bdf for place in behind],
        iommu=behind[0].iommu,
    )


HINT = "add `iommu=pt` to the kernel command line and reboot"

SIGNATURES = (
    Signature(
        pattern=r"NCCL WARN Missing \"iommu=pt\" from kernel command line",
        source="RCCL 2.16-2.30 src/init.cc; also logged by runs that succeed",
        message="RCCL does not find `iommu=pt` on the kernel command line, without which several AMD GPUs may hang",
        examples=(
            'n1:9:9 [0] src/init.cc:120 NCCL WARN Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!',
        ),
        level=Level.HINT,
    ),
    Signature(
        pattern=r"\b(?:nvidia|amdgpu) [0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d: AMD-Vi: Event logged \[IO_PAGE_FAULT",
        source="linux 5.3-6.17 drivers/iommu/amd/iommu.c, with the name of the driver",
        message="the IOMMU blocked a transfer by a GPU",
        examples=(
            "[ 8621.1] nvidia 0000:41:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0001 address=0xf3e0000100 flags=0x0030]",
            "kernel: nvidia 0000:0a:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x001c address=0xd0139068 flags=0x0020]",
            "amdgpu 0000:43:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0010 address=0x0 flags=0x0000]",
        ),
        not_examples=(
            "nvme 0000:01:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0002 address=0x0 flags=0x0000]",
        ),
        level=Level.LIKELY,
    ),
)
