"""The job may use fewer CPUs than it has ranks.

## Why it matters
Each rank keeps a CPU busy while it launches kernels. A CPU quota of a pod, or one task of Slurm
with one CPU, makes the ranks take turns: GPUs wait, and collectives run into their time limit.

## What to do
Ask for at least one CPU for each rank, better four (`resources.limits.cpu`, `--cpus-per-task`,
`docker run --cpus`).

## References
- https://docs.kernel.org/admin-guide/cgroup-v2.html (`cpu.max`)
- sched_setaffinity(2)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Missing,
    OsInfo,
    Resources,
    RunNeeds,
    Scope,
    check,
    ok,
    warn,
)

from ._util import ranks

CONDITION = Condition("cpus-fewer-than-ranks", id="DSD1011", scope=Scope.JOB, since="0.1")


@check(CONDITION)
def ranks_have_cpus(
    resources: Resources,
    run: RunNeeds,
    gpus: Gpus | Missing,
    env: Environment | Missing,
    os: OsInfo | Missing,
) -> Iterator[Finding]:
    """CPUs by affinity and cgroup quota against ranks on this host."""
    count, cpus = ranks(run, gpus, env), resources.cpus_usable
    if cpus >= count:
        yield ok(cpus=cpus, ranks=count)
        return
    kind = os.container if isinstance(os, OsInfo) else None
    ask = {
        "kubernetes": "raise `resources.limits.cpu` of the pod",
        "docker": "start the container with more `--cpus`",
    }.get(kind or "", "ask for more (`--cpus-per-task`), or start fewer ranks")
    yield warn(
        f"the job may use {cpus} of {resources.cpus_logical} CPUs, but it has {count} ranks here",
        effect="ranks take turns on the CPU, and the GPUs wait for them",
        hint=ask,
        cpus=cpus,
        cpus_logical=resources.cpus_logical,
        ranks=count,
        container=kind,
    )
