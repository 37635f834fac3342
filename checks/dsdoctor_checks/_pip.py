"""The command that installs into the environment that was examined, for hints."""

from __future__ import annotations

import shlex

from dsdoctor.api import Missing, NotStated, Packages, Patient


def pip(patient: Patient | Missing, packages: Packages | Missing, arguments: str) -> str:
    """A pip command that acts on the environment, whether or not it is active.

    `uv venv` creates environments without pip; there `uv pip` does the same.

    Args:
        patient: the interpreter examined.
        packages: what is installed there; a paste, which lists a few packages, says nothing about pip.
        arguments: what follows `pip`, as a shell reads it.

    >>> venv = Patient(executable="/v/bin/python", chosen_by="", version="3.11.7", kind="venv")
    >>> pip(venv, Packages(origins={"torch": ""}), "install ninja")
    'uv pip install --python /v/bin/python ninja'
    >>> pip(venv, Packages(), "install ninja")
    '/v/bin/python -m pip install ninja'
    """
    try:
        executable = "" if isinstance(patient, Missing) else patient.executable
        kind = "" if isinstance(patient, Missing) else patient.kind
    except NotStated:
        executable = kind = ""
    if not executable:
        return f"python -m pip {arguments}"
    python = shlex.quote(executable)
    if kind == "venv" and not _has_pip(packages):
        verb, _, rest = arguments.partition(" ")
        return f"uv pip {verb} --python {python} {rest}".rstrip()
    return f"{python} -m pip {arguments}"


def _has_pip(packages: Packages | Missing) -> bool:
    """Whether the environment has pip, as far as its packages were read."""
    if isinstance(packages, Missing):
        return True
    try:
        return not packages.origins or "pip" in packages.packages
    except NotStated:
        return True
