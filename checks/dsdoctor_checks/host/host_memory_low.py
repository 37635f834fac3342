"""Too little host memory is free for the ranks of a job.

## Why it matters
Each rank imports torch and DeepSpeed and creates a CUDA context, which takes about 2 GiB of host
memory before the model is loaded. When memory runs out, or the limit of the cgroup is reached, the
kernel kills a rank with SIGKILL (exit code -9). The rank prints no message.

## What to do
Request more memory (`--mem`, `resources.limits.memory`), stop other programs, remove stale segments
from /dev/shm, or start fewer ranks.

## References
- https://docs.kernel.org/admin-guide/cgroup-v2.html
- https://github.com/deepspeedai/DeepSpeed/issues/4239
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Condition,
    DeepSpeedLive,
    Environment,
    Finding,
    Gpus,
    Limits,
    MemoryDetail,
    Missing,
    Resources,
    RunNeeds,
    Scope,
    TorchLive,
    check,
    fail,
    of_job,
    ok,
    warn,
)
from dsdoctor_checks._killed import killed
from dsdoctor_checks._util import GIB, gib

from ._util import ranks

CONDITION = Condition("host-memory-low", id="DSD1002", scope=Scope.NODE, since="0.1")


class MemoryLimits(Limits, frozen=True, kw_only=True):
    """Memory that ranks need before they load a model.

    Attributes:
        rank_gib: for each rank.
        fatal_gib: with less than this in total, not even one rank starts.
        stale_gib: stale segments of this size are named in the hint.
    """

    rank_gib: float = 2
    fatal_gib: float = 1
    stale_gib: float = 0.5


@check(CONDITION)
def memory_is_free(
    resources: Resources,
    run: RunNeeds,
    gpus: Gpus | Missing,
    env: Environment | Missing,
    detail: MemoryDetail | Missing,
    torch: TorchLive | Missing,
    deepspeed: DeepSpeedLive | Missing,
    limits: MemoryLimits,
) -> Iterator[Finding]:
    """Judges the memory that a new process could get within the limit of its cgroup."""
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
    stale = 0 if isinstance(detail, Missing) else sum(detail.shm_left.values())
    hint = "stop other programs, request more memory, or start fewer ranks"
    if stale >= limits.stale_gib * GIB:
        evidence["stale_shm_gib"] = gib(stale)
        hint = f"remove {gib(stale)} GiB of stale segments from /dev/shm; otherwise {hint}"
    dead = [
        name
        for name, live in (("torch", torch), ("deepspeed", deepspeed))
        if not isinstance(live, Missing) and killed(live.imported)
    ]
    if dead:
        evidence["killed_imports"] = dead
    tail = f"; the kernel killed `import {dead[0]}`" if dead else ""
    finding = (fail if dead or available < limits.fatal_gib * GIB else warn)(
        f"{gib(available)} GiB of {gib(resources.memory_usable_bytes)} GiB host memory is free, but"
        f" {count} {'rank needs' if count == 1 else 'ranks need'} about {needed:g} GiB to start"
        f"{tail}",
        effect="the kernel kills a rank (exit code -9)",
        hint=hint,
        **evidence,
    )
    yield of_job(finding) if limit is not None and limit < needed * GIB else finding
