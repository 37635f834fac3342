"""Installs libaio and its header, which DeepSpeed's async_io needs.

## What it does
With `--reach system`, installs `libaio-dev` (`libaio-devel`) from the distribution.

## Undo
The package manager removes what it installed.
"""

from __future__ import annotations

from dsdoctor.api import FixRequest, Impossible, OsInfo, PackageManagers, Plan, Proof, Reach, fix
from dsdoctor_checks.fixes._routes import system_install

NAME = "install-libaio"


@fix(NAME, reach=Reach.SYSTEM)
def install_libaio(
    managers: PackageManagers, system: OsInfo, request: FixRequest
) -> Plan | Impossible | None:
    """Installs the distribution's package; the proof compiles and links a program."""
    if managers.libaio:
        return None
    package = "libaio-dev" if managers.system == "apt" else "libaio-devel"
    if package not in managers.candidates:
        return Impossible(why="no package manager here offers libaio; with conda, run "
                          "`conda install -c conda-forge libaio`")  # fmt: skip
    if not request.allows(Reach.SYSTEM):
        return Impossible(
            why=f"pass `--reach system` to install `{package}` with {managers.system}"
        )
    step = system_install(managers, (package,), system.is_root, "async_io is linked against it")
    return Plan(
        name=NAME,
        title="install libaio and its header",
        steps=(step,),
        proof=(
            Proof(
                argv=("{doctor}", "-I", "{children}/prove_library.py", "libaio.h", "aio"),
                why="a program that uses libaio compiles and links",
            ),
        ),
        undo=f"{managers.system} removes what it installed",
        reach=Reach.SYSTEM,
    )
