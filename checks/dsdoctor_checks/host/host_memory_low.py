"""Little host memory is free for the ranks of a job.

## Why it matters
Each rank imports torch and DeepSpeed and makes a CUDA context, which takes about 2 GiB of host
memory before the model is loaded. When memory (or the limit of the cgroup) is used up, the kernel
kills a rank: exit code -9, without a message.

## What to do
Ask for more memory (`--mem`, `resources.limits.memory`), end other programs, or start fewer ranks.

## References
- https://docs.kernel.org/admin-guide/cgroup-v2.html
- https://github.com/deepspeedai/DeepSpeed/issues/4239
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Limits,
    Missing,
    Resources,
    RunNeeds,
    Scope,
    check,
    fail,
    ok,
    warn,
)
from dsdoctor_checks._util import GIB, gib

from ._util import ranks

CONDITION = Condition("host-memory-low", id="DSD1002", scope=Scope.NODE, since="0.1")


class MemoryLimits(Limits, frozen=True, kw_only=True):
    """Memory that ranks need before they load anything.

    Attributes:
        rank_gib: for each rank.
        fatal_gib: below this for all, not even one starts.
    """

    rank_gib: float = 2
    fatal_gib: float = 1


@check(CONDITION)
def memory_is_free(
    resources: Resources,
    run: RunNeeds,
    gpus: Gpus | Missing,
    env: Environment | Missing,
    limits: MemoryLimits,
) -> Iterator[Finding]:
    """Judges what a new process could get, the cgroup's limit respected."""
    available, count = resources.memory_available_bytes, ranks(run, gpus, env)
    needed = limits.rank_gib * count
    limit = resources.memory_limit_bytes
    evidence: dict[str, Any] = {
        "available_gib": gib(available),
        "usable_gib": gib(resources.memory_usable_bytes),
        "cgroup_limit_gib": None if limit is None else gib(limit),
        "ranks": count,
        "needed_gib": needed,
    }
    if available >= needed * GIB:
        yield ok(**evidence)
        return
    yield (fail if available < limits.fatal_gib * GIB else warn)(
        f"{gib(available)} GiB of {gib(resources.memory_usable_bytes)} GiB host memory are free, "
        f"but {count} {'rank needs' if count == 1 else 'ranks need'} about {needed:g} GiB to start",
        effect="the kernel kills a rank (exit code -9)",
        hint="end other programs, ask for more memory, or start fewer ranks",
        **evidence,
    )
