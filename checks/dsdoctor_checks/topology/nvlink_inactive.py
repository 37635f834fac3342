"""An NVLink of a GPU is down that should be up.

## Why it matters
NCCL builds its rings and trees over the links that it finds. One dead link costs every GPU of the
job a part of its bandwidth, or ends the start of NCCL; on boards with NVSwitches the fabric may
refuse the GPU.

An SXM board without a single link is a fault too; a PCIe card without bridges is healthy, and one
with bridges has as many links as they carry.

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
    warn,
)
from dsdoctor_checks._util import chosen, listed

from ._tables import BRIDGE_LINKS, NOT_SXM, SWITCHED_LINKS, SXM_LINKS

CONDITION = Condition("nvlink-inactive", id="DSD701", scope=Scope.NODE, since="0.1")


def _known(gpu: Gpu) -> bool:
    """Whether each link told a state that we know; MIG takes links down on purpose."""
    links = gpu.links or ()
    if gpu.mig_mode:
        return False
    if not links:
        reason = gpu.unread.get("links")
        told = gpu.links is not None or (reason is not None and reason.name == "NOT_SUPPORTED")
        return told and _sxm_links(gpu) > 0
    return all(link.state in (0, 1) for link in links)


def _sxm_links(gpu: Gpu) -> int:
    """Links that a GPU has because of its board; 0 for PCIe cards and in virtual machines.

    A hypervisor takes down the links of a GPU that it hands out alone.
    """
    name = gpu.name or ""
    if gpu.virtualization != "NONE" or any(part in name for part in NOT_SXM):
        return 0
    return _of_product(SXM_LINKS, gpu) or 0


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
    if len(like) > 1 and not any(other.active_links for other in like):
        return _sxm_links(gpu)
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


def _which(down: list[int]) -> str:
    """The links that are down, for a hint."""
    if not down:
        return ""
    return f"; link{'s' if len(down) > 1 else ''} {listed(down)} {_is(down)} down"


def _is(items: list[int]) -> str:
    return "is" if len(items) == 1 else "are"


def _speeds(gpu: Gpu) -> Iterator[Finding]:
    """Judges links that are up but run slower than the others of their GPU."""
    speeds = {link.link: link.speed_mbps for link in gpu.active_links if link.speed_mbps}
    best = max(speeds.values(), default=0)
    slow = [link for link, speed in speeds.items() if speed < best]
    if not slow:
        yield ok(gpu=gpu.index, active=len(gpu.active_links), links=len(gpu.links or ()))
        return
    least = min(speeds.values())
    yield warn(
        f"NVLink {listed(slow)} of GPU {gpu.index} ({gpu.name}) runs at {least} MB/s, but its "
        f"others run at {best}",
        effect="every GPU of the job waits for the slow link",
        hint="look at `nvidia-smi nvlink -s`, then reset the GPUs or reboot",
        gpu=gpu.index,
        uuid=gpu.uuid,
        slow=slow,
        speed_mbps=least,
        best_mbps=best,
    )


@check(CONDITION)
def links_are_up(gpus: Gpus, run: RunNeeds, env: Environment | Missing) -> Iterator[Finding]:
    """Compares the active links of each GPU with what they should be."""
    found = [gpu for gpu in chosen(gpus, run, env) if _known(gpu)]
    if not found:
        yield skip("no GPU of this run has NVLinks whose state is known")
    for gpu in found:
        active, expected = len(gpu.active_links), expected_links(gpu, gpus.gpus)
        if active >= expected:
            yield from _speeds(gpu)
            continue
        down = [link.link for link in gpu.links or () if not link.active]
        yield fail(
            f"GPU {gpu.index} ({gpu.name}) has {active} active NVLinks, but {expected} are "
            "expected",
            effect="NCCL is slower on every GPU of the job, or does not start",
            hint="look for `Xid` in `dmesg`, then reset the GPUs or reboot" + _which(down),
            gpu=gpu.index,
            uuid=gpu.uuid,
            active=active,
            expected=expected,
            down=down,
        )
