"""The environment's launchers are not on PATH.

## Why it matters
`deepspeed train.py` ends with `command not found`, and `python train.py` runs with the packages of
another interpreter. A job that is started with the interpreter's full
path does not find the tools installed next to it, such as `ninja`. Activating an environment puts it
on PATH.

## What to do
Activate the environment in the shell or in the job script.

## References
- https://docs.python.org/3/library/venv.html
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DeepSpeedInstall,
    Finding,
    LaunchCommand,
    Launcher,
    Launchers,
    LaunchFiles,
    Level,
    Missing,
    Patient,
    Scope,
    Signature,
    check,
    fail,
    ok,
    skip,
    warn,
)

CONDITION = Condition("env-not-activated", id="DSD910", scope=Scope.USER_ENV, since="0.1")
#: Ways to choose an environment other than the shell's.
NAMED = ("--python", "DSDOCTOR_PYTHON", "the command")


def _started(
    command: LaunchCommand | Missing, files: LaunchFiles | Missing, found: dict[str, Launcher]
) -> Launcher | None:
    """The launcher or interpreter that the command has the shell look up.

    None for one that the environment does not have either: activating it would not help.
    """
    if isinstance(command, Missing) or (
        not isinstance(files, Missing) and files.program is not None and files.program_path is None
    ):
        return None
    return found.get(command.program)


def _is_elsewhere(started: Launcher, patient: Patient) -> bool:
    """Whether the shell finds none, or another interpreter than the one examined.

    `uvx` puts dsdoctor's own environment first on PATH, so another one says something only if
    dsdoctor is in the environment that is examined.
    """
    own = patient.chosen_by == "running interpreter"
    is_python = started.name.startswith("python")
    return started.path is None or (own and is_python and started.same_env is False)


@check(CONDITION)
def env_is_on_path(
    launchers: Launchers,
    patient: Patient,
    deepspeed: DeepSpeedInstall | Missing,
    job: LaunchCommand | Missing,
    files: LaunchFiles | Missing,
) -> Iterator[Finding]:
    """Fails if the job's command starts something else, warns if `deepspeed` is not found."""
    found = {launcher.name: launcher for launcher in launchers.launchers}
    command, python = found.get("deepspeed"), found.get("python")
    if patient.kind not in ("venv", "conda") or patient.chosen_by in NAMED:
        yield skip("the interpreter is not in a virtual environment, or was passed explicitly")
        return
    folder = patient.bin_dir or f"{patient.prefix}/bin"
    activate = (
        f"conda activate {patient.prefix}"
        if patient.kind == "conda"
        else f"source {folder}/activate"
    )
    started = _started(job, files, found)
    if started is not None and _is_elsewhere(started, patient):
        there = f"`{started.path}`" if started.path else "not on PATH"
        yield fail(
            f"the command starts `{started.name}`, which is {there}, but the environment examined, "
            f"`{patient.prefix}`, is not activated",
            effect="the job runs without the packages of this environment"
            if started.path
            else f"the command fails at once with `{started.name}: command not found`",
            hint=f"run `{activate}`, or start the job with `{folder}/{started.name}`",
            prefix=patient.prefix,
            program=started.name,
            path=started.path,
        )
        return
    if isinstance(deepspeed, Missing) or deepspeed.version is None:
        yield skip("deepspeed is not installed in the environment")
        return
    if command is None or command.path is not None or (python is not None and python.same_env):
        yield ok(deepspeed=command.path if command else None)
        return
    yield warn(
        f"`deepspeed` is not on PATH, though deepspeed {deepspeed.version} is installed in "
        f"`{patient.prefix}`: the environment is not activated",
        effect="the shell finds neither `deepspeed` nor the tools that jobs call by name",
        hint=f"run `{activate}`",
        prefix=patient.prefix,
        deepspeed=deepspeed.version,
        python_on_path=None if python is None else python.path,
    )


HINT = "activate the environment in the job script, before the line that starts the run"

#: What fails later in the interpreter that is used instead.
_VICTIMS = (
    "launch-file-missing",
    "torch-missing",
    "deepspeed-missing",
    "script-module-missing",
    "cpu-only-torch",
)

SIGNATURES = (
    Signature(
        pattern=r": \d+: (?:source|conda|mamba|micromamba|workon): not found$",
        source="dash 0.5 src/exec.c; `sh` on Debian and Ubuntu",
        message="the script runs in `sh`, which has neither `source` nor the shell functions of conda, so the environment is not activated",
        hint="start the script with `bash`, or write `#!/bin/bash` on its first line",
        examples=(
            "run.sh: 18: source: not found",
            "/opt/job.sh: 3: conda: not found",
            "train.sh: 4: mamba: not found",
            "train.sh: 4: micromamba: not found",
            "sh: 1: workon: not found",
        ),
        not_examples=("run.sh: 18: source: not found in the list",),
        level=Level.WEAK,
        masks=(*_VICTIMS, "environment-module-missing"),
        goes_on=True,
    ),
    Signature(
        pattern=r"CondaError: Run 'conda init' before 'conda activate'|Your shell has not been properly configured to use 'conda activate'",
        source="conda 4.4-26 conda/cli, conda/exceptions.py",
        message="`conda activate` does not work in this shell, so the environment is not activated",
        hint='run `eval "$(conda shell.bash hook)"` or `source $(conda info --base)/etc/profile.d/conda.sh` in the script, before `conda activate`',
        examples=(
            "CondaError: Run 'conda init' before 'conda activate'",
            "CommandNotFoundError: Your shell has not been properly configured to use 'conda activate'.",
        ),
        masks=_VICTIMS,
        goes_on=True,
    ),
    Signature(
        pattern=r"(?:EnvironmentNameNotFound: )?Could not find conda environment: (?P<name>\S{1,200})",
        source="conda 4.4-26 conda/exceptions.py",
        message="There is no conda environment `{name}`",
        hint="list them with `conda env list`, and activate the one to use by its name or its path",
        examples=(
            "EnvironmentNameNotFound: Could not find conda environment: train",
            "Could not find conda environment: /scratch/env",
        ),
        not_examples=("Could not find conda environment: ",),
        masks=_VICTIMS,
        goes_on=True,
    ),
    Signature(
        pattern=r"\bbash: (?:line \d+: )?(?P<file>\S{1,300}/bin/activate): No such file or directory|: line \d+: (?P<script>\S{1,300}/bin/activate): No such file or directory",
        source="bash 3.2-5.3 builtins/source.def, with glibc's words",
        message="The environment that the script activates does not exist here",
        hint="correct the path of `source …/bin/activate`; on a cluster, the environment must be on a file system that every node mounts",
        examples=(
            "bash: /opt/env/bin/activate: No such file or directory",
            "/var/spool/slurmd/job412/slurm_script: line 9: /home/me/venv/bin/activate: No such file or directory",
        ),
        not_examples=("bash: /opt/env/bin/activated: No such file or directory",),
        masks=_VICTIMS,
        goes_on=True,
    ),
    Signature(
        pattern=r": line \d+: (?P<tool>conda|mamba|micromamba|workon): command not found$",
        source="bash 3.2-5.3 execute_cmd.c",
        message="`{tool}` is not found in the job's shell, so the environment is not activated",
        hint="source the initialization of conda in the script (`source /opt/conda/etc/profile.d/conda.sh`), or start it with `bash -l`",
        examples=(
            "/var/spool/slurmd/job412/slurm_script: line 12: conda: command not found",
            "run.sh: line 3: mamba: command not found",
            "run.sh: line 3: micromamba: command not found",
            "run.sh: line 3: workon: command not found",
        ),
        not_examples=("run.sh: line 3: conda: command not found here",),
        level=Level.WEAK,
        masks=_VICTIMS,
        goes_on=True,
    ),
)
