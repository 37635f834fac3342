"""`srun` starts several launchers on a node, and each starts all ranks.

## Why it matters
`torchrun`, `deepspeed` and `accelerate launch` start all ranks of a node, so each node needs one
launcher. With eight tasks per node `srun` starts eight of them, on the same port and the same GPUs:
64 processes instead of eight, and `EADDRINUSE` or `Duplicate GPU detected`.

## What to do
Start the launcher with `--ntasks-per-node=1`. Or start the script without a launcher, with one task
per GPU.

## References
- https://docs.pytorch.org/docs/stable/elastic/run.html
- sbatch(1): SLURM_NTASKS_PER_NODE, SLURM_TASKS_PER_NODE
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    LaunchCommand,
    Missing,
    RunNeeds,
    Scope,
    check,
    fail,
    ok,
    skip,
)

from ._slurm import tasks_of_node, tasks_of_step

CONDITION = Condition(
    "srun-starts-launcher-twice",
    id="DSD1604",
    scope=Scope.JOB,
    since="0.1",
    leads_to=("port-in-use", "nccl-duplicate-gpu"),
)


@check(CONDITION)
def one_launcher_a_node(
    command: LaunchCommand, run: RunNeeds, env: Environment | Missing
) -> Iterator[Finding]:
    """Judges commands in which srun starts a launcher."""
    if command.launcher != "srun" or command.inner is None:
        yield skip("`srun` does not start a launcher")
        return
    tasks = tasks_of_step(command.outer, run.batch)
    own = tasks is not None and tasks == tasks_of_step(command.outer, {})
    if tasks is None and not run.batch and isinstance(env, Environment):
        tasks = tasks_of_node(env)
    if tasks is None or tasks == 1:
        yield ok(tasks=tasks)
        return
    asked = "" if own or not run.batch else "; the script asks for as many tasks"
    yield fail(
        f"`srun` starts `{command.inner}` {tasks} times on a node, but one launcher starts all ranks"
        f" of a node{asked}",
        effect="they use the same port and the same GPUs: `EADDRINUSE` or `Duplicate GPU detected`",
        hint="pass `--ntasks-per-node=1` to `srun`",
        tasks=tasks,
        launcher=command.inner,
        batch=run.batch,
    )
