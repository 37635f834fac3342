"""Installs the headers of the interpreter (Python.h), which every build of an op needs.

## What it does
With `--reach system`, installs the `-dev` or `-devel` package of this Python version from the
distribution. For an interpreter from another source the distribution has no headers.

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
    """Installs the package for this Python version."""
    if patient.has_headers:
        return None
    short = ".".join(patient.version.split(".")[:2])
    suffix = "dev" if managers.system == "apt" else "devel"
    named = f"python{short}-{suffix}"
    own = patient.base_prefix in ("/usr", "/")
    if not own or named not in managers.candidates:
        what = "is not the distribution's" if not own else f"has no package `{named}`"
        return Impossible(
            why=f"Python {short} of `{patient.base_prefix}` {what}, so no system package provides its "
            "`Python.h`; create the environment again with an interpreter that includes its headers "
            f"(the distribution's with `{named}`, conda's or uv's)"
        )
    step = system_install(managers, (named,), system.is_root, "the headers of this interpreter")
    if not request.allows(Reach.SYSTEM):
        return Impossible(why=f"pass `--reach system` to install `{named}` with {managers.system}")
    return Plan(
        name=NAME,
        title=f"install `Python.h` for Python {short}",
        steps=(step,),
        proves=("jit-build-python-headers-missing",),
        undo=f"{managers.system} removes what it installed",
        reach=Reach.SYSTEM,
    )
