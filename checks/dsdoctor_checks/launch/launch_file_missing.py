"""A program or script in the command does not exist.

## Why it matters
A launcher that is not installed or misspelled fails at once with `command not found`. A wrong script
path is worse: the launcher starts on all GPUs, or waits in the queue for its nodes, and then every
rank fails with `can't open file`.

## What to do
Install the program, correct its name, or activate the environment that contains it. Start the
command in the directory that the script's path is relative to.

## References
- POSIX.1-2017, Shell Command Language, 2.9.1.1 (command search)
- docs.python.org, "Command line and environment"
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    LaunchFiles,
    Missing,
    Observation,
    Packages,
    Patient,
    Scope,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._pip import pip
from dsdoctor_checks._util import is_listed
from dsdoctor_checks.python.launcher_of_other_env import MODULES

from . import _launch_file_missing_signatures

CONDITION = Condition(
    "launch-file-missing",
    id="DSD1212",
    scope=Scope.JOB,
    since="0.1",
    names=(Observation.NO_SCRIPT,),
)
_ACTIVATE = "or activate the environment that contains it"
_ADD = "put the folder of its launcher on PATH (`~/.local/bin` after a user installation)"
_PYTHON = re.compile(r"python[\d.]*")
#: Launchers that a package of the same name brings.
_PACKAGED = ("deepspeed", "accelerate")
#: Other launchers, and how to install each.
_LAUNCHERS = {
    "torchrun": f"install torch, which provides it, {_ACTIVATE}",
    "python": "use `python3`, or activate the environment of the job",
    "python3": "install Python, or activate the environment of the job",
    "srun": "start the command on a node of the Slurm cluster",
    "mpirun": "install Open MPI or MPICH, or load its environment module",
    "mpiexec": "install Open MPI or MPICH, or load its environment module",
}
#: Programs that choose the environment themselves: activating one does not bring them.
_RUNNERS = "conda hatch mamba micromamba pdm pipenv pipx pixi poetry rye uv uvx".split()  # noqa: SIM905
_LAUNCHERS |= {name: f"install `{name}`, or put its folder on PATH" for name in _RUNNERS}


@check(CONDITION)
def program_and_script_are_there(
    files: LaunchFiles, patient: Patient | Missing, packages: Packages | Missing
) -> Iterator[Finding]:
    """Fails if a file is certainly missing; what a shell would expand is not judged."""
    if files.line_ends:
        yield _windows_line(files)
        if files.line_ends_fatal:
            return
    if files.program is None and files.script is None:
        yield skip("the command contains shell syntax, or no file to look for")
        return
    if files.program is not None and files.program_not_executable:
        own = "/" not in files.program  # a launcher in the environment's `bin`
        path = (files.program_path if own else None) or files.program
        interpreter = "python" if own or path.endswith(".py") else "bash"
        yield fail(
            f"the program `{path}` is not executable",
            effect="the command fails at once with `Permission denied`",
            hint=f"run `chmod +x {shlex.quote(path)}`, or pass it to its interpreter: "
            f"`{interpreter} {shlex.quote(path)}`",
            program=files.program,
        )
        return
    if files.program is not None and files.program_path is None and "/" in files.program:
        yield fail(
            f"the program `{files.program}` does not exist"
            + ("" if files.program.startswith("/") else f" in `{files.folder}`"),
            effect="the command fails at once with `No such file or directory`",
            hint="correct its path, or start in the directory that it is relative to",
            program=files.program,
        )
    elif files.program is not None and files.program_path is None:
        import difflib  # noqa: PLC0415  # only where the program is missing

        near = difflib.get_close_matches(files.program, (*_PACKAGED, *_LAUNCHERS), 1)
        install = _LAUNCHERS.get(files.program)
        if files.program in _PACKAGED:
            command = pip(patient, packages, f"install {files.program}")
            install = f"run `{command}`, {_ACTIVATE}"
            if is_listed(packages, files.program):
                install = f"start it as a module: `python -m {MODULES[files.program]}`, or {_ADD}"
        misspelt = near and install is None
        if misspelt:
            install = f"change it to `{near[0]}`"
        yield fail(
            f"`{files.program}` is neither on PATH nor in the environment's `bin`"
            + (f"; the closest launcher is `{near[0]}`" if misspelt else ""),
            effect="the command fails at once with `command not found`",
            hint=install or f"install it or correct its name, {_ACTIVATE}",
            program=files.program,
        )
    if files.script is not None and files.script_exists is False:
        yield _no_script(files, files.script)
    if files.launcher_config is not None and files.launcher_config_exists is False:
        yield fail(
            f"the configuration file `{files.launcher_config}` of `accelerate launch` does not exist"
            + ("" if files.launcher_config.startswith("/") else f" in `{files.folder}`"),
            effect="`FileNotFoundError` before any rank starts",
            hint="correct the path after `--config_file`, or write the file with"
            " `accelerate config`",
            config=files.launcher_config,
        )
    if files.missing_module is not None:
        folder = files.module_folder
        yield fail(
            f"`{folder}` does not contain the module `{files.missing_module}`"
            + (f"; the closest is `{files.module_near}`" if files.module_near else "")
            if folder
            else f"the interpreter finds no module `{files.missing_module}`, started in"
            f" `{files.folder}`",
            effect=f"the command fails at once with `No module named {files.missing_module}`",
            hint=f"change it to `{files.module_near}`"
            if files.module_near
            else "correct its name, start in the directory that contains it, or activate the"
            " environment that contains it",
            module=files.missing_module,
        )
        return
    there = files.script_exists is not False and files.launcher_config_exists is not False
    if files.program_path is not None and there:
        yield ok(program=files.program_path, script=files.script_path)


def _windows_line(files: LaunchFiles) -> Finding:
    """A line of a shell script whose carriage return belongs to its last word."""
    return (fail if files.line_ends_fatal else warn)(
        f"{files.line_ends} ends with a Windows line ending",
        effect="the carriage return becomes a part of the script's name, or cuts off the rest of the"
        " command: every rank fails with `can't open file`"
        if files.line_ends_fatal
        else "the carriage return becomes a part of the last argument, such as the name of a folder",
        hint="remove the carriage returns from the shell script: `sed -i 's/\\r$//' FILE`, or"
        " `dos2unix FILE`",
        place=files.line_ends,
    )


def _no_script(files: LaunchFiles, script: str) -> Finding:
    """A script that does not exist, and a word that the launcher takes for one."""
    if _PYTHON.fullmatch(script):
        return fail(
            f"the launcher takes `{script}` for the name of the training script",
            effect="every rank fails with `can't open file`",
            hint=f"remove `{script}` in front of the script: the launcher starts Python itself",
            script=files.script_path,
        )
    if files.script_wrong:
        return _no_word(script, files.script_wrong)
    absolute = script.startswith("/")
    hint = "correct its path, or start in the directory that it is relative to"
    if files.script_folder:
        hint = f"start in `{files.script_folder}`, which contains it"
    return fail(
        f"the script `{script}` does not exist" + ("" if absolute else f" in `{files.folder}`"),
        effect="the command fails at once with `No such file or directory`"
        if not script.endswith(".py")
        else "every rank fails with `can't open file`",
        hint="correct its path" if absolute else hint,
        script=files.script_path,
    )


def _no_word(word: str, wrong: str) -> Finding:
    """A word that the launcher takes for the script, and that is certainly none."""
    if wrong == "no ending":
        return fail(
            f"the script `{word}` does not exist, but `{word}.py` does",
            effect="every rank fails with `can't open file`",
            hint=f"change it to `{word}.py`",
            script=word,
        )
    if wrong == "blank":
        return fail(
            "the launcher gets a space as the name of the script: a space follows a `\\` that should"
            " continue the line",
            effect="every rank fails with `can't open file`, and the options in the next lines are"
            " not passed",
            hint="remove what follows the `\\` at the end of each line of the command",
            script=word,
        )
    return fail(
        f"the launcher takes `{word}` for the script: it begins with `{word[0]}`"
        f" (U+{ord(word[0]):04X}) instead of `-`",
        effect="every rank fails with `can't open file`",
        hint="type `-` and plain quotes by hand: they were copied from a document that replaces them",
        script=word,
        code=f"{ord(word[0]):04X}",
    )


HINT = "install the program or correct its name, or activate the environment that contains it"
SIGNATURES = _launch_file_missing_signatures.SIGNATURES
