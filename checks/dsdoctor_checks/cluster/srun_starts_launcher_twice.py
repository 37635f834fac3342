"""`srun` starts one launcher for each GPU, and each of them starts all ranks again.

## Why it matters
`torchrun`, `deepspeed` and `accelerate launch` start the ranks of a node by themselves, so one of
them is due on each node. Under `srun` with eight tasks a node there are eight, on the same port and
the same GPUs: 64 processes where eight are meant, and `EADDRINUSE` or `duplicate GPU`.

## What to do
Start the launcher with `--ntasks-per-node=1`; or start the script itself, without a launcher, with
one task for each GPU.

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
    """Judges commands that begin with srun and go on with a launcher."""
    if command.launcher != "srun" or command.inner is None:
        yield skip("no launcher is started by `srun`")
        return
    text = _option(command.argv, "--ntasks-per-node")
    tasks = int(text) if text.isdecimal() else tasks_of_node(env)
    if tasks is None or tasks == 1:
        yield ok(tasks=tasks)
        return
    yield fail(
        f"`srun` starts `{command.inner}` {tasks} times on a node, but each one starts all ranks "
        "of the node",
        effect="they fight for one port and the same GPUs: `EADDRINUSE`, or duplicate GPUs",
        hint="give `srun` `--ntasks-per-node=1`",
        tasks=tasks,
        launcher=command.inner,
    )


def _option(argv: tuple[str, ...], name: str) -> str:
    """The value of a long option, in either of its forms."""
    for index, word in enumerate(argv):
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
        if word == name and index + 1 < len(argv):
            return argv[index + 1]
    return ""
