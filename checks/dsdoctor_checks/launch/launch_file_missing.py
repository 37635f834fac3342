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
    Level,
    Missing,
    NotStated,
    Packages,
    Patient,
    Scope,
    Signature,
    check,
    fail,
    ok,
    skip,
)
from dsdoctor_checks._pip import pip
from dsdoctor_checks.python.launcher_of_other_env import MODULES

CONDITION = Condition("launch-file-missing", id="DSD1212", scope=Scope.JOB, since="0.1")
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
            if _is_installed(packages, files.program):
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
    if (
        files.script is not None
        and files.script_exists is False
        and _PYTHON.fullmatch(files.script)
    ):
        yield fail(
            f"the launcher takes `{files.script}` for the name of the training script",
            effect="every rank fails with `can't open file`",
            hint=f"remove `{files.script}` in front of the script: the launcher starts Python itself",
            script=files.script_path,
        )
    elif files.script is not None and files.script_exists is False:
        yield fail(
            f"the script `{files.script}` does not exist in `{files.folder}`",
            effect="the command fails at once with `No such file or directory`"
            if not files.script.endswith(".py")
            else "every rank fails with `can't open file`",
            hint="correct its path, or start in the directory that it is relative to",
            script=files.script_path,
        )
    if files.launcher_config is not None and files.launcher_config_exists is False:
        yield fail(
            f"the configuration file `{files.launcher_config}` of `accelerate launch` does"
            f" not exist in `{files.folder}`",
            effect="`FileNotFoundError` before any rank starts",
            hint="correct the path after `--config_file`, or write the file with"
            " `accelerate config`",
            config=files.launcher_config,
        )
    if files.missing_module is not None:
        yield fail(
            f"`{files.module_folder}` does not contain the module `{files.missing_module}`"
            + (f"; the closest is `{files.module_near}`" if files.module_near else ""),
            effect=f"the command fails at once with `No module named {files.missing_module}`",
            hint=f"change it to `{files.module_near}`"
            if files.module_near
            else "correct its name, or activate the environment that contains it",
            module=files.missing_module,
        )
        return
    there = files.script_exists is not False and files.launcher_config_exists is not False
    if files.program_path is not None and there:
        yield ok(program=files.program_path, script=files.script_path)


def _is_installed(packages: Packages | Missing, name: str) -> bool:
    try:
        return not isinstance(packages, Missing) and name in packages.packages
    except NotStated:
        return False


HINT = "install the program or correct its name, or activate the environment that contains it"
#: What helps if `python -m` does not find a module.
_MODULE = "correct its name, start in the directory that contains it, or activate the environment that contains it"
#: What helps if the shell script has the line ends of Windows: a log ends the line there, and a
#: terminal writes the rest over the beginning.
_ENDS = "remove the carriage returns from the shell script: `sed -i 's/\\r$//' FILE`, or `dos2unix FILE`"

SIGNATURES = (
    Signature(
        pattern=r"can't open file '(?P<script>[^']{1,300})$",
        source="CPython 3.8-3.14 Modules/main.c",
        message="the name `{script}` is followed by a carriage return, so Python does not find the file",
        hint=_ENDS,
        examples=("python3: can't open file '/home/u/train.py",),
        not_examples=("python3: can't open file 'train.py': [Errno 2] No such file or directory",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"^': \[Errno 2\] No such file or directory.{0,100}can't open file '",
        source="CPython 3.8-3.14 Modules/main.c",
        message="the name of the script is followed by a carriage return, so Python does not find the file",
        hint=_ENDS,
        examples=("': [Errno 2] No such file or directorython3: can't open file '",),
        not_examples=("x': [Errno 2] No such file or directory: can't open file 'x'",),
    ),
    Signature(
        pattern=r"can't open file '?(?P<script>[^']{1,300})'?: \[Errno 2\] No such file or directory",
        source="CPython 3.8-3.14 Modules/main.c",
        message="the script `{script}` does not exist",
        hint="correct its path, or start in the directory that it is relative to",
        examples=(
            "python: can't open file '/home/u/train.py': [Errno 2] No such file or directory",
            "/usr/bin/python3: can't open file train.py: [Errno 2] No such file or directory",
        ),
        not_examples=("can't open file: [Errno 2] No such file or directory",),
        level=Level.STRONG,
    ),
    Signature(
        # `torch` and `deepspeed` have conditions of their own
        pattern=r"^\S{0,300}python[\w.]{0,12}: No module named (?P<module>(?!(?:torch|deepspeed)(?:\.__main__)?(?:;|$))[\w.]{1,200})(?:;|$)",
        source="CPython 3.3-3.14 Lib/runpy.py",
        message="`python -m` did not find the module `{module}`",
        hint=_MODULE,
        examples=(
            "/usr/bin/python3: No module named train_ddp",
            "python: No module named torch.distributed.run",
            "/opt/env/bin/python3.11: No module named tool.__main__; 'tool' is a package and cannot be directly executed",
        ),
        not_examples=(
            "/usr/bin/python3: No module named deepspeed",
            "/usr/bin/python3: No module named torch",
        ),
        level=Level.STRONG,
        masks=("script-module-missing",),
    ),
    Signature(
        pattern=r"Error while finding module specification for '(?P<module>[^']{1,200})' \(ModuleNotFoundError: No module named '(?P<part>(?!(?:torch|deepspeed)')[^']{1,200})'\)",
        source="CPython 3.3-3.14 Lib/runpy.py",
        message="`python -m {module}` did not find the module `{part}`",
        hint=_MODULE,
        examples=(
            "/usr/bin/python3: Error while finding module specification for 'bench.run' (ModuleNotFoundError: No module named 'bench')",
        ),
        not_examples=(
            "Error while finding module specification for 'torch.distributed.run' (ModuleNotFoundError: No module named 'torch')",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"The passed configuration file `(?P<file>[^`]{1,300})` does not exist",
        source="accelerate 0.12-1.15 commands/config/config_args.py",
        message="the configuration file `{file}` of `accelerate launch` does not exist",
        hint="correct the path after `--config_file`, or write the file with `accelerate config`",
        examples=(
            "FileNotFoundError: The passed configuration file `a.yaml` does not exist. Please pass an existing file",
        ),
        not_examples=("The passed configuration file `` does not exist",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"(?:exec|FATAL): +\\?\"(?!nvidia-)(?P<program>[^\s\"\\]{1,200})\\?\": executable file not found in \$PATH",
        source="Go 1 os/exec; runc 1.0-1.3; apptainer and singularity 3-4",
        message="`{program}` is not installed in the container, or not on its PATH",
        hint="use an image that has it, or write its full path",
        examples=(
            'FATAL:   "accelerate": executable file not found in $PATH',
            'OCI runtime create failed: exec: "train.sh": executable file not found in $PATH: unknown.',
        ),
        not_examples=('exec: "nvidia-smi": executable file not found in $PATH: unknown.',),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"execve\(\): (?P<program>\S{1,200}): No such file or directory",
        source="Slurm 14-25 src/slurmd/slurmstepd/task.c",
        message="`{program}` is not installed on the node, or not in the job's environment",
        examples=("slurmstepd: error: execve(): train: No such file or directory",),
        not_examples=("execve ./train: No such file or directory",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"(?:^|[\s:])(?P<program>torchrun|accelerate|srun|llamafactory-cli|axolotl|colossalai): (?:command )?not found\b",
        source="bash 3-5, dash 0.5",
        message="`{program}` is not on PATH",
        examples=(
            "bash: torchrun: command not found",
            "run.sh: line 4: accelerate: command not found",
            "train.sh: 7: srun: not found",
            "torchrun: not found",
            "accelerate: not found",
            "-bash: srun: command not found",
            "run.sh: line 4: llamafactory-cli: command not found",
            "run.sh: line 4: axolotl: command not found",
            "run.sh: line 4: colossalai: command not found",
        ),
        not_examples=("bash: my_torchrun: command not found",),
        level=Level.STRONG,
    ),
    Signature(
        # a batch script calls these more than once, and goes on
        pattern=r"(?:^|[\s:])(?P<program>apptainer|singularity|enroot|docker|podman|ray|python3?|uv): (?:command )?not found\b",
        source="bash 3-5, dash 0.5",
        message="`{program}` is not on PATH",
        examples=(
            "run.sh: line 4: apptainer: command not found",
            "run.sh: line 4: singularity: command not found",
            "run.sh: line 4: enroot: command not found",
            "run.sh: line 4: docker: command not found",
            "run.sh: line 4: podman: command not found",
            "run.sh: line 4: ray: command not found",
            "run.sh: line 4: python: command not found",
            "run.sh: line 4: python3: command not found",
            "sh: 1: uv: not found",
            "python: command not found",
        ),
        not_examples=("bash: my_docker: command not found",),
        goes_on=True,
    ),
    Signature(
        pattern=r"\b(?:ba|da|z|k)?sh: (?:line \d+: |\d+: )?(?P<program>/\S{1,300}/(?:python[\d.]*|torchrun|deepspeed|accelerate)): (?:No such file or directory|not found)$",
        source="bash 3-5, dash 0.5",
        message="`{program}` does not exist on this node",
        hint="install the environment at the same path on each node, or put it on a file system that all of them mount",
        examples=(
            "bash: /opt/env/bin/python: No such file or directory",
            "10.0.0.3: bash: line 1: /opt/env/bin/torchrun: No such file or directory",
            "sh: 1: /opt/env/bin/deepspeed: not found",
            "n2: zsh: /opt/env/bin/accelerate: No such file or directory",
            "ksh: /opt/env/bin/python3.11: not found",
        ),
        not_examples=("bash: /opt/env/bin/activate: No such file or directory",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"execve\(\): bad interpreter\((?P<program>[^)]{1,200})\): ",
        source="slurm 2.2-25.11 src/slurmd/slurmstepd/task.c",
        message="The interpreter `{program}` in the first line of the script does not exist on the node",
        hint="correct the first line (`#!`) of the script, and remove Windows line endings with `dos2unix`",
        examples=(
            "slurmstepd: error: execve(): bad interpreter(/bin/zsh): No such file or directory",
        ),
        not_examples=("execve(): bad interpreter(): No such file",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r": (?P<program>/(?![^:\s]{0,300}(?:python|pypy)[\w.]{0,12}:)[^:\s]{1,300}): bad interpreter: No such file",
        source="bash 3.2-5.3 execute_cmd.c; the words are glibc's",
        message="The interpreter `{program}` in the first line of the script does not exist",
        hint="correct the first line (`#!`) of the script, and remove Windows line endings with `dos2unix`: they are shown as `^M`",
        examples=("bash: ./run.sh: /bin/bash^M: bad interpreter: No such file or directory",),
        not_examples=(
            "bash: /new/bin/pip: /old/bin/python3.10: bad interpreter: No such file or directory",
        ),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"\benv: ['\u2018](?P<program>\w{1,40})\\r['\u2019]: No such file",
        source="coreutils 8.25-9.7 src/env.c",
        message="The first line of the script ends with a Windows line ending, so `{program}` is not found",
        hint="remove Windows line endings with `dos2unix`, or `sed -i 's/\\r$//' SCRIPT`",
        examples=(
            "/usr/bin/env: 'python3\\r': No such file or directory",
            "/usr/bin/env: \u2018bash\\r\u2019: No such file or directory",
        ),
        not_examples=("/usr/bin/env: 'a b\\r': No such file or directory",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"execve\(\): (?P<program>\S{1,300}): (?P<why>Permission denied|Exec format error)",
        source="slurm 2.2-25.11 src/slurmd/slurmstepd/task.c, with glibc's words",
        message="Slurm could not execute `{program}`: {why}",
        hint="make it executable (`chmod +x`), begin it with `#!/bin/bash`, or name the interpreter in the command (`srun bash SCRIPT`)",
        examples=(
            "slurmstepd: error: execve(): /home/me/run.sh: Permission denied",
            "slurmstepd: error: execve(): /home/me/run.sh: Exec format error",
        ),
        not_examples=("run.sh: Permission denied",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"\b\w{1,40} was unable to (?:find the specified executable file, and therefore did|launch the specified application as it could not (?:access|find)(?: or execute)? an executable)",
        source="openmpi 1.3-4.1 orte/tools/orterun/help-orterun.txt; prrte 1-4 src/mca/schizo/prte/help-prun.txt",
        message="`mpirun` did not find the program that it should start",
        hint="write the full path of the program, and check that it exists on every node; `mpirun` treats the first word that is not one of its options as the program",
        examples=(
            "mpirun was unable to find the specified executable file, and therefore did not",
            "mpirun was unable to launch the specified application as it could not access or execute an executable:",
            "prterun was unable to launch the specified application as it could not find an executable:",
        ),
        not_examples=("- was unable to find the specified executable file, and therefore did",),
        level=Level.STRONG,
        masks=("hostfile-or-ssh-problem", "rank-killed"),
    ),
    Signature(
        pattern=r"(?:HYDU?_\w{1,40}: |HYD_spawn.{0,40}: )?execvp error on file (?P<program>\S{1,300}) \(",
        source="mpich 3.0-4.3 and Intel MPI src/pm/hydra/lib/tools/bootstrap, lib/utils/launch.c",
        message="`mpirun` could not execute `{program}`",
        examples=(
            "[proxy:0:0@n1] HYDU_create_process (utils/launch/launch.c:74): execvp error on file python3 (No such file or directory)",
            "[proxy:0:0@n1] HYD_spawn (launch.c:151): execvp error on file train (No such file or directory)",
        ),
        not_examples=("execvp error on file ",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\bbash: (?:line \d+: )?(?P<program>\S{1,300}\.(?:sh|py|bash|slurm)): Permission denied$",
        source="bash 3.2-5.3 execute_cmd.c, with glibc's words for EACCES",
        message="`{program}` may not be executed",
        hint="make it executable (`chmod +x`), or name the interpreter in the command (`bash SCRIPT`, `python SCRIPT`)",
        examples=(
            "bash: ./run.sh: Permission denied",
            "bash: line 1: /home/me/train.py: Permission denied",
            "bash: job.slurm: Permission denied",
            "bash: job.bash: Permission denied",
        ),
        not_examples=("bash: out.log: Permission denied",),
        level=Level.STRONG,
        masks=("path-not-writable",),
    ),
)
