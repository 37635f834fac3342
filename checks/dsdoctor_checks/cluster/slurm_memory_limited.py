"""The Slurm job has less memory than it requested or than its ranks need.

## Why it matters
When a job exceeds the memory limit of its cgroup, the kernel kills a process (`oom_kill`, exit status
137, `return code = -9`), even if the node has free memory. A job that requests no memory gets the
partition's default, often a few GiB per CPU.

## What to do
Request memory: `--mem=0` requests all memory of the node, `--mem=200G` a part of it.

## References
- sbatch(1): `--mem`, SLURM_MEM_PER_NODE, SLURM_MEM_PER_CPU (in MiB)
- https://slurm.schedmd.com/cgroup.conf.html (ConstrainRAMSpace)
"""

from __future__ import annotations

from collections.abc import Iterator

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
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import GIB, chosen

from ._slurm import in_job, memory_of_node_mib

CONDITION = Condition(
    "slurm-memory-limited",
    id="DSD1603",
    scope=Scope.JOB,
    since="0.1",
    leads_to=("host-oom-killed",),
)

MIB = 1 << 20
#: Slurm and the kernel reserve some of it.
SLACK = 0.9


class MemoryLimits(Limits, frozen=True, kw_only=True):
    """Memory that ranks need to start.

    Attributes:
        min_gib_per_gpu: for torch, CUDA and NCCL with their buffers, without data.
    """

    min_gib_per_gpu: float = 4


@check(CONDITION)
def memory_suffices(
    env: Environment,
    resources: Resources,
    gpus: Gpus | Missing,
    run: RunNeeds,
    limits: MemoryLimits,
) -> Iterator[Finding]:
    """Compares the effective limit with the request and with the number of GPUs."""
    if not in_job(env):
        yield skip("not in a Slurm job")
        return
    have = resources.memory_usable_bytes
    asked = memory_of_node_mib(env)
    count = len(chosen(gpus, run, env))
    need = limits.min_gib_per_gpu * count
    if asked is not None and have < asked * MIB * SLACK:
        yield warn(
            f"the job requested {asked / 1024:.1f} GiB on this node, but its cgroup allows "
            f"{have / GIB:.1f} GiB",
            effect="the kernel kills a rank although the request would be enough",
            hint="check `scontrol show job -d $SLURM_JOB_ID`, or submit with `--mem=0`",
            asked_gib=round(asked / 1024, 1),
            limit_gib=round(have / GIB, 1),
        )
    elif count and have < need * GIB:
        yield warn(
            f"this Slurm job can use {have / GIB:.1f} GiB of memory for {count} GPUs, but that many"
            f" ranks need at least {need:g} GiB to start",
            effect="the kernel kills a rank (`return code = -9`) during startup",
            hint="submit with `--mem=0`, or with the memory that the job needs",
            limit_gib=round(have / GIB, 1),
            gpus=count,
            need_gib=need,
        )
    else:
        yield ok(limit_gib=round(have / GIB, 1), asked_mib=asked)
