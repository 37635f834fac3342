"""An NVLink that should be up is down.

## Why it matters
NCCL builds its rings and trees over the links it finds. One dead link costs every GPU of the job some
bandwidth, or stops NCCL from starting. On boards with NVSwitches, the fabric may reject the GPU.

An SXM board with no link up is faulty too. A PCIe card without a bridge is healthy, and one with
bridges has as many links as they carry.

## What to do
Look for Xid 74 in the kernel log, then reset all GPUs of the board together, or reboot. If the link
stays down, replace the board or the bridge.

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

from ._tables import BRIDGE_LINKS, DIRECT_BOARDS, SXM_LINKS, WHOLE_BOARD, product

CONDITION = Condition(
    "nvlink-inactive",
    id="DSD701",
    scope=Scope.NODE,
    since="0.1",
    narrower=("fabric-manager-not-running",),
)


#: Cards that a bridge connects.
_PAIR = 2


def _are_states_known(gpu: Gpu) -> bool:
    """Whether every link reported a state that we know; MIG mode takes links down on purpose."""
    links = gpu.links or ()
    if gpu.mig_mode:
        return False
    if not links:
        reason = gpu.unread.get("links")
        reported = gpu.links is not None or (reason is not None and reason.name == "NOT_SUPPORTED")
        return reported and gpu.virtualization == "NONE" and _sxm_links(gpu) > 0
    return all(link.state in (0, 1) for link in links)


def _sxm_links(gpu: Gpu) -> int:
    """How many links a GPU has because of its board; 0 for cards and unknown products."""
    return SXM_LINKS.get(product(gpu.name), 0)


def _switched(gpu: Gpu) -> bool:
    return any(link.remote_type == "SWITCH" for link in gpu.active_links)


def _ends_unknown(gpu: Gpu) -> bool:
    return all(link.remote_type in (None, "UNKNOWN") for link in gpu.active_links)


def _links_between(gpu: Gpu, other: Gpu) -> int:
    return sum(link.remote_bdf == other.pci_bdf for link in gpu.active_links)


def _is_whole(gpu: Gpu) -> bool:
    """Whether all links of the product are up, so that all its neighbors are there."""
    return 0 < _sxm_links(gpu) <= len(gpu.active_links)


def _is_whole_board(gpu: Gpu, like: list[Gpu]) -> bool:
    """Whether the whole board is visible, not the part that a hypervisor assigned."""
    if gpu.virtualization == "NONE" or len(like) >= WHOLE_BOARD:
        return True
    return gpu.virtualization is None and any(map(_is_whole, like))


def _is_cut(gpu: Gpu) -> bool:
    """Whether a number of links is up that no part of a board has, so that links are down.

    With NVSwitches all links of a GPU lead to them, and on a board of four GPUs a third of them to
    each of the others, of which a hypervisor may assign some. The boards of V100 are no such boards.
    """
    links, have = _sxm_links(gpu), len(gpu.active_links)
    meshed = WHOLE_BOARD in DIRECT_BOARDS.get(product(gpu.name), ())
    thirds, rest = divmod(links, 3)
    return have > 0 < thirds and not meshed and not rest and have % thirds != 0


def _is_alone_on_board(gpu: Gpu) -> bool:
    """Whether a container shows one V100 of a board that is not shared out by a hypervisor.

    All of its links lead to the other GPUs of the board, or to the CPUs (IBM AC922), and are up
    whichever GPUs the container shows.
    """
    meshed = WHOLE_BOARD in DIRECT_BOARDS.get(product(gpu.name), ())
    return meshed and gpu.virtualization == "NONE" and bool(gpu.active_links)


def _by_product(gpu: Gpu, like: list[Gpu]) -> int:
    """How many links the product has up, if that does not depend on the machine; else 0."""
    if len(like) == 1:
        return _sxm_links(gpu) if _is_cut(gpu) or _is_alone_on_board(gpu) else 0
    if not _is_whole_board(gpu, like):
        return 0
    if not any(other.active_links for other in like):
        # a hypervisor may take down the links of GPUs that it assigns one by one
        return _sxm_links(gpu) if gpu.virtualization == "NONE" else 0
    direct = len(like) in DIRECT_BOARDS.get(product(gpu.name), ())
    return _sxm_links(gpu) if direct or all(map(_ends_unknown, like)) else 0


def expected_links(gpu: Gpu, gpus: tuple[Gpu, ...]) -> int:
    """How many links of a GPU should be up, given its product and the same GPUs around it.

    On boards with NVSwitches every GPU has the same number, and on a whole board without them the
    product's. Elsewhere the two ends of each connection are compared: a virtual machine with some
    GPUs of a board rightly sees fewer links on some of them.
    """
    have = len(gpu.active_links)
    like = [other for other in gpus if other.name == gpu.name and _are_states_known(other)]
    if any(_switched(other) for other in like):
        counts = [len(other.active_links) for other in like if _switched(other)]
        return max(*counts, have, min(_sxm_links(gpu), len(gpu.links or ())))
    certain = _by_product(gpu, like)
    if certain:
        return max(have, certain)
    missing = 0
    bridge = BRIDGE_LINKS.get(product(gpu.name))
    if bridge and have and all(map(_ends_unknown, like)) and len(like) == len(gpus) == _PAIR:
        return -(-have // bridge) * bridge  # two cards: what is up leads to the other
    for other in like:
        if other.index == gpu.index or other.pci_bdf is None:
            continue
        here, there = _links_between(gpu, other), _links_between(other, gpu)
        want = max(here, there)
        if bridge:
            want = -(-want // bridge) * bridge
        missing += want - here
    return have + missing


def _down(gpu: Gpu, gpus: tuple[Gpu, ...]) -> list[int]:
    """The links that are down, of those that the product has.

    NVML may list more numbers (up to its maximum) than there are links on the GPU.
    """
    used = [link.link for other in gpus if other.name == gpu.name for link in other.active_links]
    count = _sxm_links(gpu) or max(used, default=len(gpu.links or ()) - 1) + 1
    return [link.link for link in gpu.links or () if not link.active and link.link < count]


def _which(down: list[int]) -> str:
    """The links that are down, for a hint."""
    if not down:
        return ""
    return f"; link{'s' if len(down) > 1 else ''} {listed(down)} {_is_or_are(down)} down"


def _is_or_are(items: list[int]) -> str:
    return "is" if len(items) == 1 else "are"


def _speeds(gpu: Gpu) -> Iterator[Finding]:
    """Judges links that are up but slower than the other links of their GPU."""
    speeds = {link.link: link.speed_mbps for link in gpu.active_links if link.speed_mbps}
    best = max(speeds.values(), default=0)
    slow = [link for link, speed in speeds.items() if speed < best]
    if not slow:
        yield ok(gpu=gpu.index, active=len(gpu.active_links), links=len(gpu.links or ()))
        return
    least = min(speeds.values())
    yield warn(
        f"NVLink {listed(slow)} of GPU {gpu.index} ({gpu.name}) runs at {least} MB/s, but the "
        f"others run at {best} MB/s",
        effect="every GPU of the job waits for the slow link",
        hint="check `nvidia-smi nvlink -s`, then reset the GPUs or reboot",
        gpu=gpu.index,
        uuid=gpu.uuid,
        slow=slow,
        speed_mbps=least,
        best_mbps=best,
    )


@check(CONDITION)
def links_are_up(gpus: Gpus, run: RunNeeds, env: Environment | Missing) -> Iterator[Finding]:
    """Compares the active links of each GPU with the expected number."""
    found = [gpu for gpu in chosen(gpus, run, env) if _are_states_known(gpu)]
    if not found:
        yield skip("no GPU of this run reports the state of its NVLinks")
    for gpu in found:
        active, expected = len(gpu.active_links), expected_links(gpu, gpus.gpus)
        if active >= expected:
            yield from _speeds(gpu)
        else:
            yield _lacks_links(gpu, expected, gpus.gpus)


def _lacks_links(gpu: Gpu, expected: int, gpus: tuple[Gpu, ...]) -> Finding:
    active, down = len(gpu.active_links), _down(gpu, gpus)
    return fail(
        f"GPU {gpu.index} ({gpu.name}) has {active} active NVLink{'s' * (active != 1)}, but "
        f"{expected} are expected",
        effect="NCCL is slower on every GPU of the job, or does not start",
        hint="look for `Xid` in `dmesg`, then reset the GPUs or reboot" + _which(down),
        gpu=gpu.index,
        uuid=gpu.uuid,
        active=active,
        expected=expected,
        down=down,
    )
