"""Host memory is short and the machine is swapping.

## Why it matters
A rank whose memory is swapped out stops for seconds at a time. Collectives wait for the slowest
rank, so the whole job slows down, and the NCCL watchdog may abort it.

## What to do
Stop the programs that use the most memory (`ps aux --sort=-rss | head`), or use another node. A job
with offload must not depend on swap.

## References
- proc(5): `SwapTotal`, `SwapFree`, `MemAvailable`
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, Finding, Limits, MemoryDetail, Resources, Scope, check, ok, warn
from dsdoctor_checks._util import GIB, gib

CONDITION = Condition("swap-thrashing", id="DSD1404", scope=Scope.NODE, since="0.1")


class SwapLimits(Limits, frozen=True, kw_only=True):
    """When a machine counts as swapping; old pages in swap are harmless.

    Attributes:
        used_share: at least this share of the swap space is in use.
        used_gib: and at least this much.
        free_share: and at most this share of memory is available.
    """

    used_share: float = 0.5
    used_gib: float = 1
    free_share: float = 0.1


@check(CONDITION)
def machine_does_not_swap(
    detail: MemoryDetail, resources: Resources, limits: SwapLimits
) -> Iterator[Finding]:
    """Warns if swap is in use and little memory is available."""
    total = detail.swap_total_bytes
    used = total - detail.swap_free_bytes
    free, memory = resources.memory_available_bytes, resources.memory_total_bytes
    if (
        used < max(limits.used_share * total, limits.used_gib * GIB)
        or free > limits.free_share * memory
    ):
        yield ok(swap_used_gib=gib(used), swap_gib=gib(total))
        return
    yield warn(
        f"{gib(used)} of {gib(total)} GiB of swap is in use, and {gib(free)} of {gib(memory)} GiB "
        "of memory is available",
        effect="ranks stop while their memory is swapped in, and the other ranks wait for them",
        hint="stop the programs that use the most memory (`ps aux --sort=-rss | head`), or use"
        " another node",
        swap_used_gib=gib(used),
        swap_gib=gib(total),
        available_gib=gib(free),
        memory_gib=gib(memory),
    )
