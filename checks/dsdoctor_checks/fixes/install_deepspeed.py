"""Installs or rebuilds DeepSpeed for the installed torch.

## What it does
Installs DeepSpeed if it is missing, replaces it if it is too old or too new for torch, and rebuilds it
if its pre-built ops belong to another torch. It does not change torch: `--no-build-isolation` builds
against the installed one.

## Undo
pip restores the previous packages. Ops that were pre-built are then built at first use.
"""

from __future__ import annotations

from dsdoctor.api import (
    DeepSpeedInstall,
    Findings,
    Impossible,
    PackageManagers,
    Patient,
    Plan,
    Run,
    TorchBuild,
    fix,
)
from dsdoctor_checks._pip import setuptools_for
from dsdoctor_checks._util import is_version
from dsdoctor_checks.fixes._pip import refusal
from dsdoctor_checks.python._tables import deepspeed_for

NAME = "install-deepspeed"
CONDITIONS = (
    "deepspeed-missing",
    "deepspeed-torch-incompatible",
    "deepspeed-import-broken",
    "prebuilt-op-mismatch",
)


@fix(NAME, in_environment=True)
def install_deepspeed(
    deepspeed: DeepSpeedInstall,
    torch: TorchBuild,
    patient: Patient,
    managers: PackageManagers,
    findings: Findings,
) -> Plan | Impossible | None:
    """Installs, upgrades or rebuilds, depending on the findings."""
    bad = findings.bad(*CONDITIONS)
    if not bad:
        return None
    if torch.version is None:
        return Impossible(why="torch is not installed, and DeepSpeed is built against it; run "
                          "`dsdoctor fix install-torch-build` first")  # fmt: skip
    if no := refusal(patient, managers, "DeepSpeed"):
        return no
    names = {finding.condition for finding in bad}
    if "prebuilt-op-mismatch" in names and not is_version(deepspeed.version):
        return Impossible(why=f"DeepSpeed reports `{deepspeed.version}` as its version, which is not a version; reinstall it")  # fmt: skip
    argv = [patient.executable, "-m", "pip", "install", "--no-input"]
    if "prebuilt-op-mismatch" in names:
        flags = ["--force-reinstall", "--no-cache-dir", "--no-deps", "--no-build-isolation"]
        spec, why = f"deepspeed=={deepspeed.version}", "rebuild its ops for this torch"
        lost = "the ops that were pre-built for another torch are not restored (they did not load)"
    else:
        flags, lost = ["--no-build-isolation"], ""
        needed = next((f.evidence["needed"] for f in bad if f.evidence.get("needed")), "")
        spec = deepspeed_for(torch.version, needed)
        why = f"torch {torch.version} needs {spec}" if spec != "deepspeed" else bad[0].message
    # its setup.py imports torch, so the build is not isolated and needs the build tools here
    tools = Run(
        argv=(*argv, setuptools_for(torch.version), "wheel", "packaging"),
        why="the tools that DeepSpeed's setup needs",
        inventory="pip",
    )
    step = Run(argv=(*argv, *flags, spec), why=why, inventory="pip", irreversible=lost)
    return Plan(
        name=NAME,
        title=f"install `{spec}` for torch {torch.version}",
        steps=(tools, step),
        proves=tuple(dict.fromkeys(finding.condition for finding in bad)),
        undo="`dsdoctor fix --undo` restores the previous packages with pip",
        reasons=(bad[0].message,),
    )
