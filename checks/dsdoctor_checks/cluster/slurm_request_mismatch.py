"""A Slurm script asks for different nodes or GPUs than its command uses.

## Why it matters
Slurm shows a job the GPUs that it asked for. More ranks than GPUs fail with `invalid device ordinal`.
`torchrun --nnodes 4` in a job of two nodes waits for the others until it times out. Without `srun`, the
commands of a batch script run only on the first node: the other nodes are paid for and idle, or
the launcher there waits for launchers that nobody starts.

## What to do
Let the command take the numbers from Slurm: `srun torchrun --nnodes $SLURM_NNODES --nproc_per_node
$SLURM_GPUS_ON_NODE …`, with `#SBATCH --ntasks-per-node=1`.

## References
- https://slurm.schedmd.com/sbatch.html
- https://docs.pytorch.org/docs/stable/elastic/run.html
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    LaunchCommand,
    Level,
    RunNeeds,
    Scope,
    Signature,
    check,
    fail,
    skip,
    warn,
)
from dsdoctor_checks._util import NODE_OPTION, RANK_OPTIONS

from ._slurm import gpus_asked, nodes_of

CONDITION = Condition(
    "slurm-request-mismatch",
    id="DSD1610",
    scope=Scope.JOB,
    since="0.1",
    leads_to=("invalid-device-ordinal", "rendezvous-timeout"),
)
#: Launchers that start ranks on their own node only, and the option for ranks of each.
_RANKS = {
    "torchrun": "--nproc_per_node",
    "accelerate": "--num_processes",
    "deepspeed": "--num_gpus",
}


@check(CONDITION)
def request_fits_command(command: LaunchCommand, run: RunNeeds) -> Iterator[Finding]:
    """Compares the options of sbatch with those of the launcher that the script starts."""
    launcher = command.inner or command.launcher
    if not run.batch or launcher not in _RANKS:
        yield skip("the command submits no Slurm job that starts a launcher")
        return
    yield from _gpus(command, run, launcher)
    yield from _nodes(command, run, launcher)


def _gpus(command: LaunchCommand, run: RunNeeds, launcher: str) -> Iterator[Finding]:
    asked, ranks = gpus_asked(run.batch), command.num_gpus
    if asked is None or ranks is None or not RANK_OPTIONS & command.options.keys():
        return
    if "exclusive" in run.batch:  # all GPUs of its nodes, however many it asks for (sbatch(1))
        return
    gpus, option = asked
    if ranks > gpus and not command.on_cpu():
        yield fail(
            f"the command starts {ranks} ranks on each node, but the job asks for {_gpu_words(gpus)}"
            f" on each (`{option}`)",
            effect=f"ranks from {gpus} on stop with `invalid device ordinal`",
            hint=f"ask for {_gpu_words(ranks)} on each node, or start {gpus} ranks on each"
            f" (`{_RANKS[launcher]}`)",
            ranks=ranks,
            gpus=gpus,
            option=option,
        )


def _nodes(command: LaunchCommand, run: RunNeeds, launcher: str) -> Iterator[Finding]:
    asked, used = nodes_of(command.outer) or nodes_of(run.batch), command.num_nodes
    option = NODE_OPTION[launcher]
    if asked is None:
        return
    evidence = {"nodes": asked, "used": used, "launcher": launcher}
    if used is not None and used > asked:
        yield fail(
            f"the command waits for {used} nodes (`{option}`), but the job asks for {asked}",
            effect="the launcher waits for the missing nodes until it times out",
            hint=f"pass `{option} $SLURM_NNODES`",
            **evidence,
        )
        return
    apart = launcher != "deepspeed" and command.inner is None
    if asked > 1 and apart:
        waits = command.options.get(option[2:], "1") != "1"
        yield (fail if waits else warn)(
            f"the job asks for {asked} nodes, but the script starts `{launcher}` without `srun`, on the"
            " first node only",
            effect="it waits for the launchers of the other nodes until it times out"
            if waits
            else "the other nodes are idle",
            hint=f"start it with `srun --ntasks-per-node=1 {launcher}`",
            **evidence,
        )
    elif used is not None and used < asked:
        yield warn(
            f"the job asks for {asked} nodes, but the command uses {used} (`{option}`)",
            effect="the other nodes are idle, or each runs a job of its own",
            hint=f"pass `{option} $SLURM_NNODES`",
            **evidence,
        )


def _gpu_words(number: int) -> str:
    return "1 GPU" if number == 1 else f"{number} GPUs"


HINT = "make `#SBATCH` and the command ask for the same: as many nodes (`--nodes`), and as many tasks per node (`--ntasks-per-node`) as ranks"

SIGNATURES = (
    Signature(
        pattern=r"You set `(?P<own>(?:devices|num_nodes)=\d+)` in Lightning, but the number of (?:tasks per node|nodes) configured in SLURM `(?P<slurm>--[\w-]{5,20}=\d+)` does not match",
        source="lightning 2.0-2.5 fabric/plugins/environments/slurm.py",
        message="The script asks Lightning for `{own}`, but Slurm for `{slurm}`",
        hint="start one task for each device of a node: `#SBATCH --ntasks-per-node` equal to `devices`, `--nodes` equal to `num_nodes`, and `srun python TRAIN.py`",
        examples=(
            "ValueError: You set `devices=4` in Lightning, but the number of tasks per node configured in SLURM `--ntasks-per-node=1` does not match. HINT: Set `devices=1`.",
            "ValueError: You set `num_nodes=2` in Lightning, but the number of nodes configured in SLURM `--nodes=1` does not match. HINT: Set `num_nodes=1`.",
        ),
        not_examples=("x` in Lightning, but the number of nodes configured in SLURM `y",),
        level=Level.CERTAIN,
    ),
)
