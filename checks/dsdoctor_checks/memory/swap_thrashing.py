"""The machine swaps: host memory is short and swap is filling up.

## Why it matters
A rank whose memory is swapped out stops for seconds at a time. Collectives wait for the slowest
rank, so the whole job slows down, and its watchdog may end it.

## What to do
End what takes the memory (`ps --sort=-rss`), or use another node. A job with offload should never
depend on swap.

## References
- proc(5): `SwapTotal`, `SwapFree`, `MemAvailable`
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, Finding, Limits, MemoryDetail, Resources, Scope, check, ok, warn
from dsdoctor_checks._util import GIB, gib

CONDITION = Condition("swap-thrashing", id="DSD1404", scope=Scope.NODE, since="0.1")


class SwapLimits(Limits, frozen=True, kw_only=True):
    """When a machine is said to swap; old pages in swap alone are healthy.

    Attributes:
        used_share: share of the swap space in use.
        used_gib: and no less than this.
        free_share: share of memory that is still available, at most.
    """

    used_share: float = 0.5
    used_gib: float = 1
    free_share: float = 0.1


@check(CONDITION)
def machine_does_not_swap(
    detail: MemoryDetail, resources: Resources, limits: SwapLimits
) -> Iterator[Finding]:
    """Swap in use together with little memory available."""
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
        f"{gib(used)} of {gib(total)} GiB swap are in use and {gib(free)} of {gib(memory)} GiB "
        "memory are available",
        effect="ranks stop while their memory is fetched back, and the others wait for them",
        hint="end what takes the memory (`ps aux --sort=-rss | head`), or use another node",
        swap_used_gib=gib(used),
        swap_gib=gib(total),
        available_gib=gib(free),
        memory_gib=gib(memory),
    )
