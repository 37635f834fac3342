"""The launcher rejects a command-line option, or ignores a key of its configuration file.

## Why it matters
The launcher exits with a usage error before any rank starts. On a cluster that happens only after
the job has waited in the queue. torchrun and deepspeed also exit at an option of the script that is
the beginning of several of theirs, such as `--run` (`--run-path`, `--run_path`). Accelerate does
not reject a misspelled key in the sections of its configuration file: the run starts without the
setting. It accepts `gpu_ids` as text only, and stops at a list or a number. It does not check
values of FSDP, Megatron-LM, `torch.compile` and parallelism: each rank stops at an unknown one when
the script creates its `Accelerator`. Each rank also stops there if a setting is both in this file
and in a DeepSpeed config. A port above 65535 is accepted by all of them, and does not exist.

## What to do
Correct the option. The launcher's options go before the script, the script's options after it; with
`--` before the script, the launcher does not look at the script's options.
`deepspeed --help`, `torchrun --help` and `accelerate launch --help` list what this release accepts.

## References
- DeepSpeed launcher/runner.py: `parse_args` (0.19.8)
- PyTorch torch/distributed/run.py: `get_args_parser` (2.13)
- accelerate commands/launch.py: `launch_command_parser` (1.15)
- accelerate utils/dataclasses.py: `DeepSpeedPlugin`, `FullyShardedDataParallelPlugin` (1.15)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    LaunchCommand,
    LaunchParse,
    Level,
    Missing,
    Scope,
    Signature,
    check,
    fail,
    ok,
    skip,
    warn,
)

CONDITION = Condition(
    "launch-option-refused",
    id="DSD1213",
    scope=Scope.JOB,
    since="0.1",
    narrower=("include-exclude-conflict", "launch-placeholder-left"),
)


@check(CONDITION)
def the_launcher_accepts_its_options(
    parse: LaunchParse | Missing, command: LaunchCommand | Missing
) -> Iterator[Finding]:
    """Judges by the answer of the launcher's own parser, in the environment examined.

    No parser looks at the range of a port, and `lint` and pastes have no parser at all: there, the
    values are judged that need a number.
    """
    values = list(_values(command, parse)) if isinstance(command, LaunchCommand) else []
    yield from values
    if isinstance(parse, Missing):
        if not values:
            yield skip(parse.detail, fact=LaunchParse.key(), why=parse.why.value)
        return
    for key, near in parse.ignored.items():
        shown = key if "." in key else f"deepspeed_config.{key}"
        yield warn(
            f"{parse.launcher} does not read `{shown}` in its configuration file"
            + (f"; the closest key is `{near}`" if near else ""),
            effect="the run starts without this setting",
            hint=f"change it to `{near}`"
            if near
            else "remove the key; DeepSpeed's own keys belong in the file that"
            " `deepspeed_config_file` points to",
            launcher=parse.launcher,
            key=key,
        )
    for key, said in parse.ended.items():
        yield warn(
            said,
            effect="with such a release, `accelerate launch` ends with an exception and starts no rank",
            hint=f"remove or change `{key}`, or keep an older release of accelerate",
            launcher=parse.launcher,
            key=key,
        )
    if parse.too_few_ranks is not None:
        ranks, machines = parse.too_few_ranks
        yield fail(
            f"`num_processes` is {ranks} and `num_machines` is {machines}, but `num_processes` counts"
            " the ranks of all machines together",
            effect="accelerate starts no rank on any machine; its torchrun stops with `AssertionError`",
            hint=f"set `num_processes` to {machines} times the number of GPUs of a machine",
            launcher=parse.launcher,
            num_processes=ranks,
            num_machines=machines,
        )
        return
    few = _too_few(command) if isinstance(command, LaunchCommand) else None
    if parse.accepted and few is not None:
        yield warn(
            f"`--num_processes {few}` is passed, which accelerate interprets as one process"
            " without DeepSpeed; expected 1 or more",
            effect="the script runs once, without ranks",
            hint="pass the number of ranks on all nodes",
            launcher=parse.launcher,
            num_processes=few,
            least=1,
        )
    elif parse.accepted and not parse.ignored and not parse.ended and not values:
        yield ok(launcher=parse.launcher)
    if parse.accepted:
        return
    if parse.in_file:
        yield fail(
            f"accelerate's configuration file stops the run: {parse.error}",
            effect="each rank stops when it reads the value"
            if parse.in_ranks
            else "`accelerate launch` ends with an exception and starts no rank",
            hint=parse.advice or "correct the value in accelerate's configuration file",
            launcher=parse.launcher,
            error=parse.error,
        )
        return
    if parse.in_ranks:
        yield fail(
            f"accelerate rejects its DeepSpeed settings: {parse.error}",
            effect="each rank stops with `ValueError` when the script creates its `Accelerator` or"
            " `TrainingArguments`",
            hint="the DeepSpeed config must contain `zero_optimization` and each such setting; remove"
            " these from accelerate's configuration file and options",
            launcher=parse.launcher,
            error=parse.error,
        )
        return
    yield fail(
        f"{parse.launcher} rejects the command line: {parse.error}",
        effect="the launcher exits with a usage error and starts no rank",
        hint=parse.advice
        or f"correct the option; `{_help(parse.launcher)}` lists what this release accepts",
        launcher=parse.launcher,
        error=parse.error,
    )


def _values(command: LaunchCommand, parse: LaunchParse | Missing) -> Iterator[Finding]:
    """Values that are no number, unless the parser itself says so, and ports that do not exist."""
    for problem in command.problems:
        option = problem.partition(" ")[0]
        port = option.endswith(("_port", "_endpoint"))
        if not port and isinstance(parse, LaunchParse) and not parse.accepted:
            continue
        expected = "a port from 0 to 65535" if port else "an integer"
        yield fail(
            f"`{problem}` is passed, but the option needs {expected}",
            effect="the launcher stops with `ValueError`"
            if option.endswith("_endpoint")
            else "the ranks cannot connect to each other"
            if port
            else "the launcher prints its usage and stops",
            hint=f"pass {expected}",
            option=problem,
        )


def _too_few(command: LaunchCommand) -> int | None:
    """A number of processes below 1; only with `--use_deepspeed` accelerate refuses it."""
    word = command.options.get("num_processes", "")
    below = (command.inner or command.launcher) == "accelerate" and re.fullmatch(
        r"-[0-9]{1,9}|0{1,9}", word
    )
    return int(word) if below else None


def _help(launcher: str) -> str:
    return "accelerate launch --help" if launcher == "accelerate" else f"{launcher} --help"


HINT = "correct the option; if a value is empty, check that the job script sets its variable"

_IDS_HINT = (
    'write `gpu_ids` in accelerate\'s configuration as quoted text (`gpu_ids: "0,1"`), or `all`'
)

SIGNATURES = (
    Signature(
        pattern=r"^AttributeError: '(?P<kind>list|int)' object has no attribute 'split'$",
        source="accelerate 1.15 commands/launch.py _validate_launch_command",
        level=Level.STRONG,
        near=("args.gpu_ids.split",),
        message="accelerate stops at its configuration file: `gpu_ids` is of type `{kind}`, expected text",
        hint=_IDS_HINT,
        examples=(
            "AttributeError: 'list' object has no attribute 'split'",
            "AttributeError: 'int' object has no attribute 'split'",
        ),
        not_examples=("my.AttributeError: 'list' object has no attribute 'split'",),
    ),
    Signature(
        pattern=r"^ValueError: Less than two GPU ids were configured and tried to run on multiple GPUs",
        source="accelerate 1.15 commands/launch.py _validate_launch_command",
        level=Level.CERTAIN,
        message="accelerate is to run on several GPUs, but its `gpu_ids` lists one",
        hint="list two GPUs or more (`gpu_ids: \"0,1\"`), or set `distributed_type: 'NO'`",
        examples=(
            "ValueError: Less than two GPU ids were configured and tried to run on multiple GPUs. Please",
        ),
        not_examples=(
            "caught ValueError: Less than two GPU ids were configured and tried to run on multiple GPUs",
        ),
    ),
    Signature(
        # what argparse prints, under the names that the launchers give themselves; a script of the
        # user's that is named `run.py` or `launch.py` prints the same
        pattern=r"^(?P<launcher>torchrun|deepspeed|[Aa]ccelerate(?: <command> \[<args>\])?(?: launch)?(?: command)?): error: (?P<said>.+)",
        source="torch 1.10-2.13 distributed/run.py; deepspeed 0.9-0.19 launcher/runner.py; accelerate 0.12-1.15 commands/launch.py",
        message="`{launcher}` rejects the command line: {said}",
        examples=(
            "torchrun: error: argument --nnodes: invalid value: ''",
            "deepspeed: error: unrecognized arguments: --num-gpu 4",
            "accelerate <command> [<args>] launch: error: argument --num_processes: expected one argument",
            "Accelerate launch command: error: argument --num_machines: invalid int value: ''",
            "accelerate launch: error: the following arguments are required: training_script",
        ),
        not_examples=("run.py: torchrun: error: the script's own words",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"^(?P<launcher>srun|sbatch|salloc|mpirun|mpiexec|orterun): (?P<said>(?:unrecognized|invalid) option .{1,200})",
        source="glibc 2.17-2.41 posix/getopt.c, as slurm prints it; options of a plugin, such as pyxis's, exist where it is loaded",
        message="`{launcher}` rejects the command line: {said}",
        hint="correct the option; an option of a plugin, such as `--container-image` of pyxis, exists only where `plugstack.conf` loads the plugin on the node that submits",
        examples=(
            "srun: unrecognized option '--container-image'",
            "sbatch: invalid option -- 'Z'",
            "salloc: unrecognized option '--gpu'",
            "mpirun: unrecognized option '--hosts'",
            "mpiexec: unrecognized option '--hosts'",
            "orterun: unrecognized option '--hosts'",
        ),
        not_examples=("my.py: unrecognized option '--gpus'",),
        level=Level.STRONG,
        # of an option in the script, which sbatch reads on
        not_near=("Batch job submission failed", "Submitted batch job"),
    ),
)
