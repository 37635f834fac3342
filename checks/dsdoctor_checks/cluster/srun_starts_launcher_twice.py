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
    Scope,
    check,
    fail,
    ok,
    skip,
    whole,
)

from ._slurm import tasks_of_node

CONDITION = Condition(
    "srun-starts-launcher-twice",
    id="DSD1604",
    scope=Scope.JOB,
    since="0.1",
    leads_to=("port-in-use", "nccl-duplicate-gpu"),
)


@check(CONDITION)
def one_launcher_a_node(command: LaunchCommand, env: Environment) -> Iterator[Finding]:
    """Judges commands in which srun starts a launcher."""
    if command.launcher != "srun" or command.inner is None:
        yield skip("`srun` does not start a launcher")
        return
    text = _option(command.argv, "--ntasks-per-node")
    tasks = whole(text)
    tasks = tasks_of_node(env) if tasks is None else tasks
    if tasks is None or tasks == 1:
        yield ok(tasks=tasks)
        return
    yield fail(
        f"`srun` starts `{command.inner}` {tasks} times on a node, but one launcher starts all ranks"
        " of a node",
        effect="they use the same port and the same GPUs: `EADDRINUSE` or `Duplicate GPU detected`",
        hint="pass `--ntasks-per-node=1` to `srun`",
        tasks=tasks,
        launcher=command.inner,
    )


def _option(argv: tuple[str, ...], name: str) -> str:
    """The value of a long option, as `--name=value` or `--name value`."""
    for index, word in enumerate(argv):
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
        if word == name and index + 1 < len(argv):
            return argv[index + 1]
    return ""
