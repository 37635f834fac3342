"""The job's processes get far fewer CPUs than they need.

## Why it matters
Slurm gives one CPU to a task unless asked for more, and its cgroup holds the job to that. All
DataLoader workers of a rank, and the optimizer of an offloading run, then share one CPU: the GPUs
wait. A wrapper that starts eight ranks in one task has the CPUs of one task.

## What to do
Ask for them: `--cpus-per-task=N` (and `srun --cpus-per-task=N` again, which since Slurm 22.05 does
not inherit it), or `--exclusive`.

## References
- srun(1), Slurm 22.05: `--cpus-per-task` is no longer inherited from sbatch
- sbatch(1): SLURM_CPUS_ON_NODE, SLURM_CPUS_PER_TASK
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Limits,
    Resources,
    Scope,
    check,
    ok,
    skip,
    warn,
)

from ._slurm import cpus_of_node, gpus_of_node, in_job, number

CONDITION = Condition("slurm-cpus-few", id="DSD1602", scope=Scope.JOB, since="0.1")


class CpuLimits(Limits, frozen=True, kw_only=True):
    """CPUs that a rank needs.

    Attributes:
        min_cpus_per_gpu: fewer starve a rank with its data workers.
    """

    min_cpus_per_gpu: float = 2


@check(CONDITION)
def cpus_suffice(env: Environment, resources: Resources, limits: CpuLimits) -> Iterator[Finding]:
    """Compares the usable CPUs with the job's GPUs, and with what Slurm said."""
    if not in_job(env):
        yield skip("this is no Slurm job")
        return
    given = gpus_of_node(env)
    gpus = given[0] if given else 0
    usable, said = resources.cpus_usable, cpus_of_node(env)
    need = limits.min_cpus_per_gpu * gpus
    if not gpus or usable >= need:
        yield ok(usable=usable, gpus=gpus, said=said)
        return
    step = " in this step" if said is not None and said > usable else ""
    yield warn(
        f"this Slurm job has {gpus} GPUs and {usable} CPUs{step}, but {need:g} CPUs are the least "
        "for so many ranks",
        effect="data workers and the optimizer of an offloading run starve, and the GPUs wait",
        hint=f"submit with `--cpus-per-task={max(1, int(need))}` or more, and give it to `srun` too",
        usable=usable,
        gpus=gpus,
        said=said,
        cpus_per_task=number(env, "SLURM_CPUS_PER_TASK"),
        need=need,
    )
