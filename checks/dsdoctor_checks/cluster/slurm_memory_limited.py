"""The memory of the Slurm job is less than was asked for, or a small part of the node.

## Why it matters
The cgroup of the job kills whoever goes beyond its limit (`oom_kill`, exit status 137, `return code
= -9`), however much memory the node has. A job that names no memory gets the partition's default,
often a few GiB for each CPU.

## What to do
Ask for memory: `--mem=0` takes all of the node, `--mem=200G` a part of it.

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
#: Slurm and the kernel keep some of it back.
SLACK = 0.9


class MemoryLimits(Limits, frozen=True, kw_only=True):
    """Memory that ranks need to start.

    Attributes:
        min_gib_per_gpu: torch, CUDA and NCCL with their buffers, without any data.
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
    """Judges the limit in force against the request, and against the number of GPUs."""
    if not in_job(env):
        yield skip("this is no Slurm job")
        return
    have = resources.memory_usable_bytes
    asked = memory_of_node_mib(env)
    count = len(chosen(gpus, run, env))
    need = limits.min_gib_per_gpu * count
    if asked is not None and have < asked * MIB * SLACK:
        yield warn(
            f"the job asked Slurm for {asked / 1024:.1f} GiB on this node, but its cgroup allows "
            f"{have / GIB:.1f} GiB",
            effect="the kernel kills a rank where the plan says that it fits",
            hint="look at `scontrol show job -d $SLURM_JOB_ID`, or submit with `--mem=0`",
            asked_gib=round(asked / 1024, 1),
            limit_gib=round(have / GIB, 1),
        )
    elif count and have < need * GIB:
        yield warn(
            f"this Slurm job may use {have / GIB:.1f} GiB of memory for {count} GPUs, but "
            f"{need:g} GiB are the least to start so many ranks",
            effect="the kernel kills a rank (`return code = -9`) while it starts",
            hint="submit with `--mem=0`, or with the memory that the job needs",
            limit_gib=round(have / GIB, 1),
            gpus=count,
            need_gib=need,
        )
    else:
        yield ok(limit_gib=round(have / GIB, 1), asked_mib=asked)
