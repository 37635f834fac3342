"""Installs the headers of the interpreter (Python.h), which every build of an op includes.

## What it does
With `--reach system`, installs the `-dev` or `-devel` package of this very Python version from the
distribution. An interpreter that the distribution does not have cannot be mended that way: its own
builder has the headers.

## Undo
The package manager removes what it installed.
"""

from __future__ import annotations

from dsdoctor.api import FixRequest, Impossible, OsInfo, PackageManagers, Patient, Plan, Reach, fix
from dsdoctor_checks.fixes._routes import system_install

NAME = "install-python-headers"


@fix(NAME, reach=Reach.SYSTEM)
def install_python_headers(
    patient: Patient, managers: PackageManagers, system: OsInfo, request: FixRequest
) -> Plan | Impossible | None:
    """The package of this version, else of the distribution's own Python."""
    if patient.has_headers:
        return None
    short = ".".join(patient.version.split(".")[:2])
    suffix = "dev" if managers.system == "apt" else "devel"
    named = f"python{short}-{suffix}"
    own = patient.base_prefix in ("/usr", "/")
    if not own or named not in managers.candidates:
        what = "is not the distribution's" if not own else f"has no package `{named}`"
        return Impossible(
            why=f"Python {short} of `{patient.base_prefix}` {what}, so no system package brings its "
            "`Python.h`; make the environment anew with an interpreter that has its headers "
            f"(the distribution's with `{named}`, conda's or uv's)"
        )
    step = system_install(managers, (named,), system.is_root, "the headers of this interpreter")
    if not request.allows(Reach.SYSTEM):
        return Impossible(
            why=f"give `--reach system`, so that {managers.system} may install `{named}`"
        )
    return Plan(
        name=NAME,
        title=f"`Python.h` of Python {short}",
        steps=(step,),
        proves=("jit-build-python-headers-missing",),
        undo=f"{managers.system} removes what it installed",
        reach=Reach.SYSTEM,
    )
