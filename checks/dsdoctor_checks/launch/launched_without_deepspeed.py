"""The command starts plain Python, but the job needs a launcher.

## Why it matters
DeepSpeed and `torch.distributed` read RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT,
which a launcher sets. Without them DeepSpeed tries MPI and stops with `No module named 'mpi4py'`, or
one process trains on one GPU and the other GPUs are idle.

## What to do
Start the script with `deepspeed`, `torchrun` or `accelerate launch`. For a single process without
`--use_deepspeed`, `accelerate launch` sets none of these variables.

## References
deepspeed/comm/comm.py (`init_distributed`), deepspeed/runtime/engine.py
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DsConfig,
    Environment,
    Finding,
    Gpus,
    LaunchCommand,
    Level,
    Missing,
    Observation,
    OsInfo,
    RunNeeds,
    Scope,
    Signature,
    check,
    fail,
    ok,
    skip,
    warn,
    whole,
)
from dsdoctor_checks._util import listed, may_be_set

CONDITION = Condition(
    "launched-without-deepspeed",
    id="DSD1206",
    scope=Scope.JOB,
    since="0.1",
    names=(Observation.NO_RANK_ENVIRONMENT,),
)

_NEEDED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
#: Those that `torch.distributed` converts with `int()` (rendezvous.py, `_env_rendezvous_handler`).
_NUMBERS = ("RANK", "WORLD_SIZE", "MASTER_PORT")


@check(CONDITION)
def a_launcher_starts_the_ranks(
    command: LaunchCommand,
    run: RunNeeds,
    environment: Environment | Missing,
    config: DsConfig | Missing,
    gpus: Gpus | Missing,
    os: OsInfo | Missing,
) -> Iterator[Finding]:
    """Reports `python train.py` if the job uses DeepSpeed or several GPUs."""
    if posixpath.basename(command.program) == "llamafactory-cli":
        yield from _of_llamafactory(command, run, environment, gpus)
        return
    if command.launcher != "python" or command.script is None:
        return
    known = dict(environment.variables) if isinstance(environment, Environment) else {}
    known |= command.env
    missing = [name for name in _NEEDED if name not in known]
    if not missing:
        wrong = [name for name in _NUMBERS if not _may_be_number(known[name])]
        for name in wrong:
            shown = known[name] or '""'
            yield fail(
                f"`{name}` is `{shown}`, expected a number",
                effect="`torch.distributed` stops with `invalid literal for int()`",
                hint=f"set `{name}` to a number in the job script",
                variable=name,
                value=known[name],
            )
        if not wrong:
            yield from _ranks_that_nothing_starts(command, known, os)
        return
    if any(may_be_set(environment, name) for name in missing):
        yield skip(f"whether `{missing[0]}` is set is not known")
        return
    count = max(len(run.gpus), run.expect_gpus or 0)
    wants = isinstance(config, DsConfig) or command.has_script_option("deepspeed", "ds_config")
    line = _with_launcher(command, count or _visible(known, gpus))
    shown = f"`python {command.script}` starts one process"
    if count > 1:
        yield fail(
            f"{shown}, but {count} GPUs are requested",
            effect="one GPU is used, or DeepSpeed stops with `No module named 'mpi4py'`",
            hint=f"start it with `{line}`",
            gpus=count,
            unset=missing,
        )
    elif run.group_line and not any(name.startswith(_STARTERS) for name in known):
        unset = next((name for name in _NEEDED if name in missing and name != "LOCAL_RANK"), "")
        if unset:
            yield fail(
                f"{shown}, but line {run.group_line} of it reads `{unset}`, which a launcher sets",
                effect=f"it stops with `environment variable {unset} expected, but not set`",
                hint=f"start it with `torchrun --nproc_per_node {count or 1} {command.script}`",
                unset=missing,
                line=run.group_line,
                count=count or 1,
            )
    elif wants:
        yield warn(
            f"{shown} without a launcher, but a DeepSpeed config needs ranks: `{missing[0]}` is"
            " not set",
            effect="DeepSpeed tries MPI and stops with `No module named 'mpi4py'`, unless the"
            " script sets the variables itself",
            hint=f"start it with `{line}`",
            unset=missing,
        )


def _of_llamafactory(
    command: LaunchCommand, run: RunNeeds, environment: Environment | Missing, gpus: Gpus | Missing
) -> Iterator[Finding]:
    """LLaMA-Factory starts torchrun for several GPUs, and otherwise refuses DeepSpeed.

    llamafactory 0.8.3-0.9.5 launcher.py, hparams/parser.py (read 2026-11-29).
    """
    known = dict(environment.variables) if isinstance(environment, Environment) else {}
    known |= command.env
    if command.script_args[:1] != ("train",) or "deepspeed" not in run.trainer_values:
        return
    switches = ("FORCE_TORCHRUN", "USE_RAY", "USE_KT", "USE_MCA")
    if any(may_be_set(environment, name) for name in switches if name not in known):
        yield skip("whether `FORCE_TORCHRUN` is set is not known")
        return
    if any(known.get(name, "").lower() in ("true", "y", "1") for name in switches):
        yield ok(switched=True)
        return
    count = max(len(run.gpus), run.expect_gpus or 0) or _visible(known, gpus)
    if (count or 0) > 1 or isinstance(gpus, Missing):
        yield ok(gpus=count)
        return
    seen = count or 0
    yield (fail if count else warn)(
        f"`llamafactory-cli` starts one process without torchrun (GPUs: {seen}), but its YAML sets"
        " `deepspeed`",
        effect="LLaMA-Factory stops before it loads the model",
        hint=f"start it with `FORCE_TORCHRUN=1 {shlex.join(command.argv)}`",
        gpus=seen,
    )


#: Variables of whatever starts one process for each rank: schedulers, MPI, torchrun.
_STARTERS = ("SLURM_", "OMPI_", "PMI", "TORCHELASTIC_", "KUBERNETES_")


def _ranks_that_nothing_starts(
    command: LaunchCommand, known: dict[str, str], os: OsInfo | Missing
) -> Iterator[Finding]:
    """Warns of a rank's variables left in a shell: one process waits for ranks that nobody starts.

    In a container, whoever starts the pods sets them, and on another node's address, other nodes
    are meant to join.
    """
    ranks = whole(known["WORLD_SIZE"]) or 1
    here = known["MASTER_ADDR"] == "localhost" or known["MASTER_ADDR"].startswith("127.")
    started = any(name.startswith(_STARTERS) for name in known) or "WORLD_SIZE" in command.env
    contained = isinstance(os, Missing) or os.container is not None
    if ranks < 2 or not here or started or contained:  # noqa: PLR2004
        yield ok(ranks_in_environment=True)
        return
    names = listed(f"`{name}`" for name in _NEEDED)
    yield warn(
        f"`WORLD_SIZE={ranks}` and `RANK={known['RANK']}` are set in this shell, but"
        f" `python {command.script}` starts one process",
        effect=f"it waits for {ranks - 1} more, which nothing starts, until it times out",
        hint=f"unset {names}, or start it with `{_with_launcher(command, ranks)}`",
        ranks=ranks,
        rank=known["RANK"],
    )


def _may_be_number(value: str) -> bool:
    """Whether it is a number, or holds what a shell still replaces."""
    return "$" in value or "`" in value or value.strip().removeprefix("-").isdecimal()


def _visible(variables: dict[str, str], gpus: Gpus | Missing) -> int | None:
    """How many GPUs the job would see; None when it is not known."""
    shown = variables.get("CUDA_VISIBLE_DEVICES")
    if shown is not None:
        return len([one for one in shown.split(",") if one.strip() not in ("", "-1")]) or None
    return None if isinstance(gpus, Missing) else gpus.count or len(gpus.gpus) or None


def _with_launcher(command: LaunchCommand, count: int | None) -> str:
    """The same command under the deepspeed launcher."""
    script = command.script or ""
    words = ["deepspeed"]
    words += ["--num_gpus", str(count)] if count else []
    words += [script] if script.endswith(".py") else ["--module", script]
    assigned = "".join(f"{name}={shlex.quote(value)} " for name, value in command.env.items())
    return assigned + shlex.join((*words, *command.script_args))


HINT = (
    "start it with `deepspeed train.py` or `torchrun`; `accelerate launch` makes a process group "
    "only for several processes (`--num_processes`) or with `--use_deepspeed`"
)

SIGNATURES = (
    Signature(
        pattern="environment variable (?:RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT|LOCAL_RANK) expected, but not set",
        source="torch 0.4-2.13 distributed/rendezvous.py",
        examples=(
            "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but not set",
            "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable WORLD_SIZE expected, but not set",
            "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable MASTER_ADDR expected, but not set",
            "environment variable MASTER_PORT expected, but not set",
            "environment variable LOCAL_RANK expected, but not set",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="No module named '?mpi4py",
        source="python 3.3-3.14 Lib/importlib/_bootstrap.py",
        examples=("ModuleNotFoundError: No module named 'mpi4py'",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="KeyError: '(?:LOCAL_RANK|RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)'",
        source="python 3.3-3.14 Objects/dictobject.c",
        examples=(
            "KeyError: 'LOCAL_RANK'",
            "KeyError: 'RANK'",
            "KeyError: 'WORLD_SIZE'",
            "KeyError: 'MASTER_ADDR'",
            "KeyError: 'MASTER_PORT'",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="Default process group (?:has not been|is not) initialized",
        source="torch 2.13.0 distributed/distributed_c10d.py",
        examples=(
            "ValueError: Default process group has not been initialized, please make sure to call init_process_group.",
            "AssertionError: Default process group is not initialized",
        ),
        level=Level.STRONG,
        # a launcher started it, and the script itself forgets to initialize the group
        unless=(
            "torch.distributed.launch",
            "torchrun ",
            "ChildFailedError",
            "accelerate launch ",
            # Lightning makes the group itself, and none for one device
            "pytorch_lightning/trainer/",
            "lightning/pytorch/trainer/",
        ),
    ),
    Signature(
        pattern="DeepSpeed requires the LOCAL_RANK",
        source="deepspeed 0.19.8 runtime/engine.py",
        examples=(
            "AssertionError: DeepSpeed requires the LOCAL_RANK environment variable, it is set by the deepspeed launcher",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="DeepSpeed backend not set, please init",
        source="deepspeed 0.19.8 comm/comm.py",
        examples=(
            "AssertionError: DeepSpeed backend not set, please initialize it using init_process_group()",
        ),
        level=Level.STRONG,
        message="No process group exists: `deepspeed.init_distributed` was not called",
        hint="call `deepspeed.init_distributed()` first, and start the script with `deepspeed` or `torchrun`",
    ),
    Signature(
        pattern="MPI_ERRORS_ARE_FATAL|error occurred in MPI_Init",
        source="openmpi 1.4-4.1 ompi/errhandler/errhandler_predefined.c",
        examples=(
            "*** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,",
            "*** An error occurred in MPI_Init_thread",
        ),
        level=Level.STRONG,
        requires=("attempting to detect MPI environment",),
        not_near=("PMIX ERROR", "OPAL ERROR", "]<stderr>"),  # mpirun did start it
    ),
    Signature(
        pattern="Mismatch in local rank setting, args|!= OMPI_COMM_WORLD_LOCAL_RANK|Error: rank number is not in current env|Distributed backend is not initialized",
        source="deepspeed 0.5-0.19 runtime/engine.py, comm/comm.py",
        examples=(
            "AssertionError: Mismatch in local rank setting, args.local_rank=0 but env['LOCAL_RANK']=1.",
            "AssertionError: LOCAL_RANK (0) != OMPI_COMM_WORLD_LOCAL_RANK (1), not sure how to proceed",
            "AssertionError: Distributed backend is not initialized. Please set dist_init_required to True",
            "RuntimeError: rank number is not in current env",
        ),
    ),
    Signature(
        pattern=r"Could not find '(?:RANK|LOCAL_RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)' in the torch environment|KeyError: '(?:SLURM_(?:PROCID|LOCALID|NTASKS|NODELIST|JOB_NODELIST)|OMPI_COMM_WORLD_\w+|PMI_\w+)'|No rendezvous handler for None",
        source=(
            "colossalai 0.1-0.4 initialize.py; torch 1.0-2.13 distributed/rendezvous.py; "
            "python 3.3-3.14 Objects/dictobject.c"
        ),
        examples=(
            "RuntimeError: Could not find 'RANK' in the torch environment, visit the site for more information on launching with torch",
            "KeyError: 'SLURM_PROCID'",
            "KeyError: 'OMPI_COMM_WORLD_RANK'",
            "No rendezvous handler for None",
        ),
        not_examples=("KeyError: 'SLURM_PARTITION'",),
    ),
    Signature(
        pattern=r"(?:Error|Exception): .{0,120}(?:\b(?:RANK|LOCAL_RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)\b|\b(?:MPI|distributed|torchrun) environment variables?).{0,80}\b(?:(?:not|n't|never) (?:be(?:en)? )?(?:set|found|defined|present|exist)|missing|required)",
        source=(
            "programs' own checks of the variables that torch 0.4-2.13 distributed/rendezvous.py "
            "reads"
        ),
        examples=(
            "RuntimeError: Distributed mode requested but RANK and WORLD_SIZE are not set",
            "AssertionError: MASTER_ADDR environment variable is not set",
            "OSError: MPI environment variables are not set. Use an MPI launcher.",
            "Exception: RANK ... not set",
            "RuntimeError: RANK ... missing",
            "RuntimeError: RANK ... required",
        ),
        not_examples=(
            "ValueError: RANK is 9 but must be below WORLD_SIZE 8",
            "ValueError: the environment variable HF_HOME is not set",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"int\(\) argument must be .{0,80}not 'NoneType'",
        source="torch 2.13.0 _dynamo/variables/object_protocol.py",
        examples=(
            "TypeError: int() argument must be a string, a bytes-like object or a number, not 'NoneType'",
            "TypeError: int() argument must be a string, a bytes-like object or a real number, not 'NoneType'",
        ),
        not_examples=(
            "TypeError: int() argument must be a string, a bytes-like object or a number, not 'list'",
        ),
        level=Level.WEAK,
        near=("LOCAL_RANK", "WORLD_SIZE", '"RANK"', "'RANK'", "MASTER_PORT"),
    ),
    Signature(
        pattern=r"^(?:\w+\.)*AssertionError: torch\.distributed is not (?:available or not )?initialized|Error: .{0,160}\blaunch (?:it )?with [`'\x22]?(?:torchrun|accelerate launch|deepspeed|python -m torch\.distributed)",
        source=(
            "programs' own checks, such as megatron_core 0.5-0.16 _rank_utils.py, colossalai "
            "0.1-0.4 booster/plugin/dp_plugin_base.py, transformer_engine 1-2 "
            "pytorch/distributed.py"
        ),
        examples=(
            "AssertionError: torch.distributed is not initialized",
            "ValueError: Sharded training is asked for. Please launch with `torchrun`",
        ),
        not_examples=(
            "expected AssertionError: torch.distributed is not initialized, and got it",
            "you may also launch with torchrun",
        ),
        level=Level.HINT,
    ),
    Signature(
        pattern=r"MPI world (?:size|rank) \d+ does not match torch world (?:size|rank)",
        source="deepspeed 0.14.5-0.19.8 comm/comm.py",
        examples=(
            "AssertionError: MPI world size 4 does not match torch world size 1",
            "AssertionError: MPI world rank 1 does not match torch world rank 0",
        ),
        not_examples=("a file that does not match torch world size files",),
    ),
)
