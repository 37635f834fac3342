"""The job can use fewer CPUs than it has ranks.

## Why it matters
Each rank keeps a CPU busy while it launches kernels. In a pod with a small CPU quota, or a Slurm task
with one CPU, the ranks take turns. The GPUs wait, and collectives can time out.

## What to do
Request at least one CPU for each rank, preferably four (`resources.limits.cpu`, `--cpus-per-task`,
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
    NotStated,
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
    """Compares the usable CPUs (affinity, cgroup quota) with the ranks on this host."""
    count, cpus = ranks(run, gpus, env), resources.cpus_usable
    if cpus >= count:
        yield ok(cpus=cpus, ranks=count)
        return
    kind = os.container if isinstance(os, OsInfo) else None
    logical = _logical(resources)
    if logical is not None and cpus >= logical:  # nothing withholds any
        ask = "start fewer ranks on this host, or use one with more CPUs"
    else:
        ask = {
            "kubernetes": "raise `resources.limits.cpu` of the pod",
            "docker": "start the container with more `--cpus`",
        }.get(kind or "", "request more CPUs (`--cpus-per-task`), or start fewer ranks")
    yield warn(
        f"the job can use {cpus}{f' of {logical}' if logical else ''} CPUs, but has {count} ranks on"
        " this host",
        effect="ranks take turns on the CPU, and the GPUs wait for them",
        hint=ask,
        cpus=cpus,
        cpus_logical=logical,
        ranks=count,
        container=kind,
    )


def _logical(resources: Resources) -> int | None:
    """CPUs of the machine; None if a paste does not say so."""
    try:
        return resources.cpus_logical
    except NotStated:
        return None
