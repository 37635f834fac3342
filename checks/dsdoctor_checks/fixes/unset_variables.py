"""Unsets or corrects environment variables that harm a job.

## What it does
Writes a snippet that unsets or corrects each variable that a finding reports: `DS_SKIP_CUDA_CHECK`,
`CUDA_LAUNCH_BLOCKING`, a `CUDA_VISIBLE_DEVICES` without a valid GPU, NCCL variables that have no
effect, were renamed or disable something, `KMP_AFFINITY` with `--bind_cores_to_rank`, a `CUDA_HOME`
that is not a toolkit, directories on `LD_LIBRARY_PATH` that hide torch's libraries, and variables with which torch
or DeepSpeed cannot be imported. Removes lines of `.deepspeed_env` that set the same variables. It does not edit shell startup files: if one sets
the variable, delete that line yourself.

## Undo
Removes the snippet and restores `.deepspeed_env`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable

from dsdoctor.api import (
    Environment,
    Finding,
    Findings,
    FixRequest,
    Impossible,
    Missing,
    Patient,
    Plan,
    Reach,
    RepairFiles,
    Step,
    Write,
    fix,
    reach_of,
)
from dsdoctor_checks._util import listed
from dsdoctor_checks.fixes._activation import activation

NAME = "unset-variables"
Changes = dict[str, str]
"""Variable to its new value; "" = it is unset."""


def _unset_named(finding: Finding, env: Environment) -> Changes:
    names = finding.evidence.get("variables") or [finding.evidence.get("variable")]
    return {str(name): "" for name in names if env.get(str(name)) is not None}


def _unset_one(name: str) -> Callable[[Finding, Environment], Changes]:
    def change(_finding: Finding, env: Environment) -> Changes:
        return {name: ""} if env.get(name) is not None else {}

    return change


def _renamed(finding: Finding, env: Environment) -> Changes:
    changes = _unset_named(finding, env)
    new, value = finding.evidence.get("new"), finding.evidence.get("value")
    if new and value and env.get(str(new)) is None:
        changes[str(new)] = str(value)
    return changes


def _alloc(finding: Finding, _env: Environment) -> Changes:
    name, value = finding.evidence.get("variable"), str(finding.evidence.get("value", ""))
    if new := finding.evidence.get("set_to"):
        return {str(name): str(new)}
    entry, meant = str(finding.evidence.get("entry")), finding.evidence.get("meant")
    return {str(name): value.replace(entry, str(meant))} if name and meant else {}


def _toolkit(finding: Finding, env: Environment) -> Changes:
    other = finding.evidence.get("fitting") or finding.evidence.get("other")
    if other:
        return {"CUDA_HOME": str(other)}
    place = finding.evidence.get("cuda_home")
    names = [n for n in ("CUDA_HOME", "CUDA_PATH") if (env.get(n) or "").rstrip("/") == place]
    return dict.fromkeys(names, "")


def _shadows(finding: Finding, env: Environment) -> Changes:
    hiding = {posixpath.dirname(str(row[1])) for row in finding.evidence.get("shadows", ())}
    folders = (env.get("LD_LIBRARY_PATH") or "").split(":")
    kept = [folder for folder in folders if folder and folder.rstrip("/") not in hiding]
    return {"LD_LIBRARY_PATH": ":".join(kept)}


CHANGES: dict[str, Callable[[Finding, Environment], Changes]] = {
    "skip-cuda-check-set": _unset_one("DS_SKIP_CUDA_CHECK"),
    "cuda-launch-blocking-set": _unset_one("CUDA_LAUNCH_BLOCKING"),
    "nccl-debug-switch-left": _unset_named,
    "nccl-unknown-variable": _unset_named,
    "torch-nccl-variable-renamed": _renamed,
    "alloc-conf-unknown": _alloc,
    "kmp-affinity-with-binding": _unset_one("KMP_AFFINITY"),
    "visible-devices-invalid": _unset_one("CUDA_VISIBLE_DEVICES"),
    "nvcc-arch-unsupported": _unset_one("TORCH_CUDA_ARCH_LIST"),
    "cuda-home-invalid": _toolkit,
    "several-toolkits": _toolkit,
    "ld-library-path-shadows-torch": _shadows,
    "variable-refused": _unset_named,
}


def _without_variables(text: str, names: set[str]) -> str:
    r"""A file of `NAME=value` lines without some names.

    >>> _without_variables("A=1\nDS_SKIP_CUDA_CHECK=1\n", {"DS_SKIP_CUDA_CHECK"})
    'A=1\n'
    """
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if line.partition("=")[0].strip() not in names)


@fix(NAME)
def unset_variables(
    findings: Findings,
    env: Environment,
    patient: Patient,
    request: FixRequest,
    files: RepairFiles | Missing,
) -> Plan | Impossible | None:
    """One snippet for all variables, and a change of `.deepspeed_env`."""
    changes: Changes = {}
    cured: list[str] = []
    for condition, change in CHANGES.items():
        for finding in findings.bad(condition):
            made = change(finding, env)
            if made:
                changes |= made
                cured.append(condition)
    held = None if isinstance(files, Missing) else files.get("deepspeed-env")
    gone = {name for name, value in changes.items() if not value} | {"DS_SKIP_CUDA_CHECK"}
    steps: tuple[Step, ...] = ()
    if held is not None and (kept := _without_variables(held[1], gone)) != held[1]:
        steps = (
            Write(
                write=held[0],
                content=kept,
                why="the deepspeed launcher exports these variables to every node",
                reach=Reach.HOME,
            ),
        )
        if not request.allows(Reach.HOME):
            if not changes:
                return Impossible(
                    why=f"`{held[0]}` sets {listed(sorted(gone))}; pass `--reach home` to correct it"
                )
            steps = ()
    if not changes and not steps:
        return None
    line = ""
    if changes:
        more, line = activation(NAME, changes, patient, request)
        steps = (*steps, *more)
    shown = [f"`{name}`" for name in changes] or [f"lines of `{held[0] if held else ''}`"]
    return Plan(
        name=NAME,
        title=f"unset or correct {listed(shown)}",
        steps=steps,
        proves=tuple(dict.fromkeys(cured)),
        undo="`dsdoctor fix --undo` removes the snippet and restores the file",
        reach=reach_of(steps),
        reasons=(
            "shell startup files are not edited: if one sets these variables, delete the line",
        ),
        activate=line,
    )  # fmt: skip
