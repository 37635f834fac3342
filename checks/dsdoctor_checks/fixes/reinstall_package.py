"""Installs packages again whose files are missing, empty or cut off, in the release that is there.

## What it does
pip installs the same release of each package that `package-damaged` reports, without its
requirements. A build with a local version, such as `0.28.0+cu130`, comes from an index of its own, so
it is left to you; torch has `install-torch-build`.

## Undo
There is nothing to restore: the packages and their releases stay as they were.
"""

from __future__ import annotations

from dsdoctor.api import (
    DamagedPackages,
    Findings,
    Impossible,
    PackageManagers,
    Patient,
    Plan,
    Reach,
    Run,
    fix,
)
from dsdoctor_checks._util import is_version, listed
from dsdoctor_checks.fixes._pip import refusal

NAME = "reinstall-package"
CONDITION = "package-damaged"


@fix(NAME, in_environment=True)
def reinstall_package(
    damaged: DamagedPackages, patient: Patient, managers: PackageManagers, findings: Findings
) -> Plan | Impossible | None:
    """One command for all of them."""
    bad = findings.bad(CONDITION)
    if not bad:
        return None
    named = {str(finding.evidence.get("package")) for finding in bad}
    found = [package for package in damaged.packages if package.name in named]
    plain = [one for one in found if is_version(one.version) and "+" not in one.version]
    if no := refusal(patient, managers, listed([f"`{one.name}`" for one in found])):
        return no
    if len(plain) < len(found):
        other = next(one for one in found if one not in plain)
        return Impossible(
            why=f"`{other.name}` {other.version} comes from an index of its own; install it again from"
            " there, with `--force-reinstall --no-deps`"
        )
    specs = tuple(f"{one.name}=={one.version}" for one in plain)
    install = ("-m", "pip", "install", "--no-input", "--force-reinstall", "--no-deps", *specs)
    step = Run(
        argv=(patient.executable, *install),
        why="the same releases, with the files that pip recorded",
        inventory="pip",
    )
    return Plan(
        name=NAME,
        title=f"install {listed(list(specs))} again",
        steps=(step,),
        proves=(CONDITION,),
        undo="the releases do not change, so there is nothing to undo",
        reach=Reach.ENV,
        reasons=tuple(finding.message for finding in bad),
    )
