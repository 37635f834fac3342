"""The launchers of the examined environment are not on PATH.

## Why it matters
`deepspeed train.py` finds no command, and jobs that are started by the interpreter's full path do
not find the tools beside it (ninja). An environment gets onto PATH by its activation.

## What to do
Activate the environment in the shell or the job script that starts the job.

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
    Missing,
    Patient,
    Scope,
    check,
    ok,
    skip,
    warn,
)

CONDITION = Condition("env-not-activated", id="DSD910", scope=Scope.USER_ENV, since="0.1")
#: Ways in which the user named an environment that need not be that of the shell.
NAMED = ("--python", "DSDOCTOR_PYTHON")


@check(CONDITION)
def env_is_on_path(
    launchers: Launchers, patient: Patient, deepspeed: DeepSpeedInstall | Missing
) -> Iterator[Finding]:
    """Judges whether a user would find the environment's own `deepspeed`."""
    found = {launcher.name: launcher for launcher in launchers.launchers}
    command, python = found.get("deepspeed"), found.get("python")
    if patient.kind not in ("venv", "conda") or patient.chosen_by in NAMED:
        yield skip("the interpreter is of no environment, or was named on purpose")
        return
    if isinstance(deepspeed, Missing) or deepspeed.version is None:
        yield skip("the environment has no deepspeed to start")
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
        effect="the command is not found, nor are tools that jobs call by name",
        hint=f"run `{activate}`",
        prefix=patient.prefix,
        deepspeed=deepspeed.version,
        python_on_path=None if python is None else python.path,
    )
