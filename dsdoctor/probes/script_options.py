"""Whether the training script's own parser accepts the arguments of the command."""

from __future__ import annotations

import posixpath

from dsdoctor.api import LaunchCommand, Missing, Packages, RunNeeds, ScriptOptions, probe
from dsdoctor.framework import fills_training_arguments
from dsdoctor.host import Host, HostError, read_text
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.probes.script_imports import examined_script
from dsdoctor.scripts.trainer_rules import refusal


@probe
def script_options(
    host: Host,
    run: RunNeeds,
    command: LaunchCommand,
    choice: PatientChoice,
    packages: Packages | Missing,
) -> ScriptOptions | Missing:
    """Reads the parser from the script's source, and gives it the words of the command."""
    script = examined_script(run, command, choice)
    return options_of(host, run.cwd, command, script, packages)


def options_of(
    host: Host, cwd: str, command: LaunchCommand, script: str, packages: Packages | Missing
) -> ScriptOptions:
    """The verdict of a script's parser.

    Args:
        host: the machine.
        cwd: the working folder of the job.
        command: starts the script.
        script: its path as the command writes it.
        packages: where classes of installed packages are found.

    Raises:
        HostError: the script cannot be read, or its parser is not known.
    """
    passed = _of_launcher(command, packages)
    words = [*([passed] if passed else ()), *command.script_args]
    if {"-h", "--help"} & set(words):
        raise HostError(Why.ABSENT, "the script is asked for its help")
    # argparse and difflib: most checks examine no script
    from dsdoctor.scripts import arguments  # noqa: PLC0415

    path = posixpath.normpath(posixpath.join(cwd, script))
    try:
        text = read_text(host, path)
        judged = arguments.judge(host, path, text, words, cwd, packages)
    except arguments.UnknownParserError as error:
        raise HostError(Why.UNSUPPORTED, str(error)) from error
    return ScriptOptions(
        script=script,
        of=judged.of,
        unknown=judged.unknown,
        near=judged.near,
        refusal=judged.refusal or _of_trainer(command, text),
        launcher=command.inner or command.launcher,
        by_launcher=passed.partition("=")[0],
    )


def _of_trainer(command: LaunchCommand, text: str) -> str:
    """What transformers' `TrainingArguments` reject together, if the script fills them."""
    options = dict(command.script_options())
    return refusal(options) if options and fills_training_arguments(text) else ""


def _of_launcher(command: LaunchCommand, packages: Packages | Missing) -> str:
    """What a launcher puts before the script's arguments; "" = nothing.

    Sources, read 2026-11-29: deepspeed 0.9.0 to 0.19.8 launcher/launch.py and
    launcher/multinode_runner.py; torch 1.9 to 2.15
    distributed/launch.py and distributed/run.py (`--local-rank` since 2.0).
    """
    options = command.options
    if "deepspeed" in {command.launcher, command.inner}:
        by_mpi = options.get("launcher", "pdsh").lower() not in {"pdsh", "ssh"}  # no launch.py
        return "" if by_mpi or options.keys() & {"no_local_rank", "no_python"} else "--local_rank=0"
    if "torch.distributed.launch" not in command.argv or "use_env" in options:
        return ""
    version = None if isinstance(packages, Missing) else packages.version("torch")
    if version is None:
        return ""
    return "--local_rank=0" if version.startswith("1.") else "--local-rank=0"
