"""The Slurm job has too few CPUs for its GPUs.

## Why it matters
By default Slurm assigns one CPU to a task, and its cgroup enforces that. All DataLoader workers of a
rank, and an offloaded optimizer, then share one CPU, and the GPUs wait. If one task starts eight
ranks, they share the CPUs of one task.

## What to do
Request more CPUs with `--cpus-per-task=N`, or request the node with `--exclusive`. Pass
`--cpus-per-task=N` to `srun` too: since Slurm 22.05 it does not inherit the option from `sbatch`.

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
from dsdoctor_checks._util import amount

from ._slurm import cpus_of_node, gpus_of_node, in_job, number, tasks_here

CONDITION = Condition("slurm-cpus-few", id="DSD1602", scope=Scope.JOB, since="0.1")


class CpuLimits(Limits, frozen=True, kw_only=True):
    """CPUs that a rank needs.

    Attributes:
        min_cpus_per_gpu: with fewer CPUs a rank and its DataLoader workers are slow.
    """

    min_cpus_per_gpu: float = 2


@check(CONDITION)
def cpus_suffice(env: Environment, resources: Resources, limits: CpuLimits) -> Iterator[Finding]:
    """Compares the usable CPUs with the GPUs of the job."""
    if not in_job(env):
        yield skip("not in a Slurm job")
        return
    given = gpus_of_node(env)
    gpus = given[0] if given else 0
    usable, said = resources.cpus_usable, cpus_of_node(env)
    tasks = tasks_here(env)
    # a task that is bound to its own CPUs runs the ranks of its own GPUs only
    alone = tasks is not None and tasks > 1 and (said is None or usable < said)
    if tasks and alone:
        gpus = -(-gpus // tasks)
    need = limits.min_cpus_per_gpu * gpus
    if not gpus or usable >= need:
        yield ok(usable=usable, gpus=gpus, said=said)
        return
    what = "task" if alone else "job"
    step = " in this step" if said is not None and said > usable and not alone else ""
    yield warn(
        f"this Slurm {what} has {amount(gpus, 'GPU')} and {amount(usable, 'CPU')}{step}, but {amount(gpus, 'rank')} need{'s' if gpus == 1 else ''} at least"
        f" {need:g} CPUs",
        effect="DataLoader workers and an offloaded optimizer are slow, and the GPUs wait",
        hint=f"submit with `--cpus-per-task={max(1, int(need))}` or more, and pass it to `srun` too",
        usable=usable,
        gpus=gpus,
        said=said,
        cpus_per_task=number(env, "SLURM_CPUS_PER_TASK"),
        need=need,
    )
