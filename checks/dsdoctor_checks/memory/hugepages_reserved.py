"""Huge pages hold the memory that the run lacks.

## Why it matters
Memory reserved for huge pages belongs to the machine but to no ordinary program: torch, DeepSpeed
and the page cache get nothing of it. `free` shows it as used although nobody uses it.

## What to do
Give it back with `sysctl vm.nr_hugepages=0` (as root), and look who set it: `/etc/sysctl.d`, the
kernel's command line, DPDK or a hypervisor.

## References
- https://docs.kernel.org/admin-guide/mm/hugetlbpage.html
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Limits,
    MemoryDemand,
    MemoryDetail,
    Missing,
    Resources,
    RunNeeds,
    Scope,
    check,
    ok,
    warn,
)
from dsdoctor_checks._util import GIB, gib
from dsdoctor_checks.host._util import ranks

CONDITION = Condition("hugepages-reserved", id="DSD1403", scope=Scope.NODE, since="0.1")


class HugePageLimits(Limits, frozen=True, kw_only=True):
    """What counts.

    Attributes:
        min_gib: less than this in unused huge pages is never named.
        rank_gib: memory that a rank needs at least, where no plan or model tells more.
    """

    min_gib: float = 1
    rank_gib: float = 2


@check(CONDITION)
def no_memory_is_held(
    detail: MemoryDetail,
    resources: Resources,
    run: RunNeeds,
    demand: MemoryDemand | Missing,
    gpus: Gpus | Missing,
    env: Environment | Missing,
    limits: HugePageLimits,
) -> Iterator[Finding]:
    """Unused huge pages matter where the run lacks memory, and nowhere else."""
    least = limits.rank_gib * GIB * ranks(run, gpus, env)
    needed = least if isinstance(demand, Missing) else max(least, demand.host_bytes)
    free, held = resources.memory_available_bytes, detail.hugepages_free_bytes
    if free >= needed or held < limits.min_gib * GIB:
        yield ok(hugepages_gib=gib(detail.hugepages_bytes), unused_gib=gib(held))
        return
    yield warn(
        f"{gib(held)} GiB lie unused in huge pages, while the run needs {gib(needed)} GiB and "
        f"{gib(free)} GiB are free",
        effect="ordinary memory never comes from there: the kernel kills a rank (exit code -9)",
        hint="give it back with `sysctl vm.nr_hugepages=0` as root",
        unused_gib=gib(held),
        needed_gib=gib(needed),
        available_gib=gib(free),
        hugepages_gib=gib(detail.hugepages_bytes),
    )
