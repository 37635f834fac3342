"""The environment's launchers are not on PATH.

## Why it matters
`deepspeed train.py` ends with `command not found`. A job that is started with the interpreter's full
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
    Launchers,
    Level,
    Missing,
    Patient,
    Scope,
    Signature,
    check,
    ok,
    skip,
    warn,
)

CONDITION = Condition("env-not-activated", id="DSD910", scope=Scope.USER_ENV, since="0.1")
#: Ways to choose an environment other than the shell's.
NAMED = ("--python", "DSDOCTOR_PYTHON")


@check(CONDITION)
def env_is_on_path(
    launchers: Launchers, patient: Patient, deepspeed: DeepSpeedInstall | Missing
) -> Iterator[Finding]:
    """Warns if the shell does not find the environment's `deepspeed`."""
    found = {launcher.name: launcher for launcher in launchers.launchers}
    command, python = found.get("deepspeed"), found.get("python")
    if patient.kind not in ("venv", "conda") or patient.chosen_by in NAMED:
        yield skip("the interpreter is not in a virtual environment, or was passed explicitly")
        return
    if isinstance(deepspeed, Missing) or deepspeed.version is None:
        yield skip("deepspeed is not installed in the environment")
        return
    if command is None or command.path is not None or (python is not None and python.same_env):
        yield ok(deepspeed=command.path if command else None)
        return
    folder = patient.bin_dir or f"{patient.prefix}/bin"
    activate = (
        f"conda activate {patient.prefix}"
        if patient.kind == "conda"
        else f"source {folder}/activate"
    )
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
    ),
)
