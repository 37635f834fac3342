"""An NVLink of a GPU is down that should be up.

## Why it matters
NCCL builds its rings and trees over the links that it finds. One dead link costs every GPU of the
job a part of its bandwidth, or ends the start of NCCL; on boards with NVSwitches the fabric may
refuse the GPU.

## What to do
Look for Xid 74 in the kernel log, reset the GPUs (all of the board together) or reboot; when the
link stays down, have board or bridge replaced.

## References
- nvml.h of CUDA 13.5: nvmlDeviceGetNvLinkState
- https://docs.nvidia.com/health-validation/reference/checks/nvlink.md
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpu,
    Gpus,
    Missing,
    RunNeeds,
    Scope,
    check,
    fail,
    ok,
    skip,
)
from dsdoctor_checks._util import chosen, listed

from ._tables import BRIDGE_LINKS, SWITCHED_LINKS

CONDITION = Condition("nvlink-inactive", id="DSD701", scope=Scope.NODE, since="0.1")


def _known(gpu: Gpu) -> bool:
    """Whether each link told a state that we know; MIG takes links down on purpose."""
    links = gpu.links or ()
    return bool(links) and not gpu.mig_mode and all(link.state in (0, 1) for link in links)


def _switched(gpu: Gpu) -> bool:
    return any(link.remote_type == "SWITCH" for link in gpu.active_links)


def _of_product(table: dict[str, int], gpu: Gpu) -> int | None:
    return next((count for part, count in table.items() if part in (gpu.name or "")), None)


def _toward(gpu: Gpu, other: Gpu) -> int:
    return sum(link.remote_bdf == other.pci_bdf for link in gpu.active_links)


def expected_links(gpu: Gpu, gpus: tuple[Gpu, ...]) -> int:
    """How many links of a GPU should be up, by its like on this machine and its product.

    Only boards with NVSwitches give every GPU the same number; where GPUs are joined directly,
    a virtual machine with some of them rightly sees fewer links of some.
    """
    have = len(gpu.active_links)
    like = [other for other in gpus if other.name == gpu.name and _known(other)]
    if any(_switched(other) for other in like):
        counts = [len(other.active_links) for other in like if _switched(other)]
        product = _of_product(SWITCHED_LINKS, gpu) or 0
        return max(*counts, have, min(product, len(gpu.links or ())))
    missing = 0
    bridge = _of_product(BRIDGE_LINKS, gpu)
    for other in like:
        if other.index == gpu.index or other.pci_bdf is None:
            continue
        here, there = _toward(gpu, other), _toward(other, gpu)
        want = max(here, there)
        if bridge:
            want = -(-want // bridge) * bridge
        missing += want - here
    return have + missing


@check(CONDITION)
def links_are_up(gpus: Gpus, run: RunNeeds, env: Environment | Missing) -> Iterator[Finding]:
    """Compares the active links of each GPU with what they should be."""
    found = [gpu for gpu in chosen(gpus, run, env) if _known(gpu)]
    if not found:
        yield skip("no GPU of this run has NVLinks whose state is known")
    for gpu in found:
        active, expected = len(gpu.active_links), expected_links(gpu, gpus.gpus)
        if active >= expected:
            yield ok(gpu=gpu.index, active=active, links=len(gpu.links or ()))
            continue
        down = [link.link for link in gpu.links or () if not link.active]
        yield fail(
            f"GPU {gpu.index} ({gpu.name}) has {active} active NVLinks, but {expected} are "
            "expected",
            effect="NCCL is slower on every GPU of the job, or does not start",
            hint="look for `Xid` in `dmesg`, then reset the GPUs or reboot; links "
            f"{listed(down)} are down"
            if len(down) > 1
            else "look for `Xid` in `dmesg`, then reset the GPUs or reboot; link "
            f"{listed(down) if down else '?'} is down",
            gpu=gpu.index,
            uuid=gpu.uuid,
            active=active,
            expected=expected,
            down=down,
        )
