"""Installs ninja, which torch uses to build DeepSpeed's ops.

## What it does
If ninja is installed in the environment but is not on PATH, adds its directory to PATH. Otherwise
installs it with pip into the environment, or with `--reach system` from the distribution.

## Undo
pip, or the system's package manager, restores the previous packages.
"""

from __future__ import annotations

from dsdoctor.api import (
    Compilers,
    FixRequest,
    Impossible,
    OsInfo,
    PackageManagers,
    Patient,
    Plan,
    Reach,
    Run,
    Step,
    fix,
    reach_of,
)
from dsdoctor_checks.fixes._activation import activation
from dsdoctor_checks.fixes._routes import system_install

NAME = "install-ninja"
CONDITIONS = ("jit-build-ninja-missing",)


@fix(NAME)
def install_ninja(
    compilers: Compilers,
    patient: Patient,
    managers: PackageManagers,
    system: OsInfo,
    request: FixRequest,
) -> Plan | Impossible | None:
    """Changes PATH, or installs ninja with pip or from the distribution."""
    if compilers.ninja is not None:
        return None
    steps: tuple[Step, ...]
    line = ""
    folder = patient.bin_dir or f"{patient.prefix}/bin"
    if compilers.ninja_in_env is None and (patient.kind == "system" or not managers.pip):
        where = f"`{patient.executable}` is not in a virtual environment"
        way = "create one"
        if patient.kind != "system":
            where = f"`{patient.executable}` has no pip"
            way = f"run `{patient.executable} -m ensurepip` first"
        if managers.system is None or "ninja-build" not in managers.candidates:
            return Impossible(why=f"{where}, and no package manager offers `ninja-build`; {way}")
        if not request.allows(Reach.SYSTEM):
            return Impossible(why=f"{where}; pass `--reach system` to install `ninja-build` with "
                              f"{managers.system}, or {way}")  # fmt: skip
        steps = (system_install(managers, ("ninja-build",), system.is_root, "the build tool"),)
    else:
        more, line = activation(NAME, {"PATH": f"{folder}:$PATH"}, patient, request)
        if compilers.ninja_in_env is None:
            pip = Run(
                argv=(patient.executable, "-m", "pip", "install", "--no-input", "ninja"),
                why="torch builds ops with it",
                inventory="pip",
            )
            more = (pip, *more)
        steps = more
    return Plan(
        name=NAME,
        title="make ninja available to jobs",
        steps=steps,
        proves=CONDITIONS,
        undo="`dsdoctor fix --undo` restores the previous packages and removes the snippet",
        reach=reach_of(steps),
        activate=line,
    )
