"""Unused huge pages reserve memory that the run needs.

## Why it matters
Memory that is reserved for huge pages is not available to ordinary programs such as torch and
DeepSpeed, or to the page cache. `free` reports it as used although no program uses it.

## What to do
Release it with `sysctl vm.nr_hugepages=0` as root. Find out what reserved it: `/etc/sysctl.d`, the
kernel command line, DPDK or a hypervisor.

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
    """When unused huge pages matter.

    Attributes:
        min_gib: less than this in unused huge pages is not reported.
        rank_gib: memory that a rank needs at least, if no plan or model says more.
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
    """Warns about unused huge pages if the run needs more memory than is free."""
    least = limits.rank_gib * GIB * ranks(run, gpus, env)
    needed = least
    if not isinstance(demand, Missing):  # how a command loads the weights is not known
        of_job = demand.host_least_bytes if demand.source == "command" else demand.host_bytes
        needed = max(least, of_job)
    free, held = resources.memory_available_bytes, detail.hugepages_free_bytes
    if free >= needed or held < limits.min_gib * GIB:
        yield ok(hugepages_gib=gib(detail.hugepages_bytes), unused_gib=gib(held))
        return
    yield warn(
        f"{gib(held)} GiB are reserved for unused huge pages, but the run needs {gib(needed)} GiB"
        f" and {gib(free)} GiB are free",
        effect="a rank cannot use huge pages, and the kernel kills it (exit code -9)",
        hint="release them with `sysctl vm.nr_hugepages=0` as root",
        unused_gib=gib(held),
        needed_gib=gib(needed),
        available_gib=gib(free),
        hugepages_gib=gib(detail.hugepages_bytes),
    )
