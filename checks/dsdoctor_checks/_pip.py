"""The command that installs into the environment that was examined, for hints."""

from __future__ import annotations

import shlex

from dsdoctor.api import Missing, NotStated, Packages, Patient

#: What the setup of DeepSpeed and flash-attn imports, besides torch.
_BUILD_TOOLS = frozenset({"packaging", "setuptools", "wheel"})


def pip(patient: Patient | Missing, packages: Packages | Missing, arguments: str) -> str:
    """A pip command that acts on the environment, whether or not it is active.

    `uv venv` creates environments without pip; there `uv pip` does the same. In any other without
    pip, the interpreter can install the pip that it comes with.

    Args:
        patient: the interpreter examined.
        packages: what is installed there; a paste, which lists a few packages, says nothing about pip.
        arguments: what follows `pip`, as a shell reads it.

    >>> venv = Patient(executable="/v/bin/python", chosen_by="", version="3.11.7", kind="venv")
    >>> pip(venv, Packages(), "install ninja")
    '/v/bin/python -m pip install ninja'
    >>> pip(venv, Packages(origins={"torch": ""}), "install ninja")
    '/v/bin/python -m ensurepip && /v/bin/python -m pip install ninja'
    >>> import msgspec
    >>> uv = msgspec.structs.replace(venv, made_by_uv=True)
    >>> pip(uv, Packages(origins={"torch": ""}), "install ninja")
    'uv pip install --python /v/bin/python ninja'
    """
    try:
        known = None if isinstance(patient, Missing) else patient
        executable = known.executable if known else ""
        bare = known is not None and known.kind == "venv" and not _has_pip(packages)
        uv = bare and known is not None and known.made_by_uv
    except NotStated:
        executable, bare, uv = "", False, False
    if not executable:
        return f"python -m pip {arguments}"
    python = shlex.quote(executable)
    if not bare:
        return f"{python} -m pip {arguments}"
    if uv:
        verb, _, rest = arguments.partition(" ")
        return f"uv pip {verb} --python {python} {rest}".rstrip()
    return f"{python} -m ensurepip && {python} -m pip {arguments}"


def pip_build(patient: Patient | Missing, packages: Packages | Missing, *names: str) -> str:
    """As `pip`, for packages whose setup imports torch, which an isolated build does not see.

    Without isolation, the build uses the tools of the environment, which may not have them.

    >>> venv = Patient(executable="/v/bin/python", chosen_by="", version="3.11.7", kind="venv")
    >>> pip_build(venv, Packages(), "flash-attn")
    '/v/bin/python -m pip install --no-build-isolation flash-attn'
    >>> pip_build(venv, Packages(origins={"pip": ""}, packages={"pip": {}}), "flash-attn")[:66]
    '/v/bin/python -m pip install packaging setuptools wheel && /v/bin/'
    """
    build = pip(patient, packages, f"install --no-build-isolation {' '.join(names)}")
    try:
        known = None if isinstance(packages, Missing) or not packages.origins else packages
        lacking = sorted(_BUILD_TOOLS - known.packages.keys()) if known else []
    except NotStated:
        lacking = []
    if not lacking:
        return build
    # a command that installs pip first did so
    again = build.rpartition(" && ")[2]
    return f"{pip(patient, packages, 'install ' + ' '.join(lacking))} && {again}"


def _has_pip(packages: Packages | Missing) -> bool:
    """Whether the environment has pip, as far as its packages were read."""
    if isinstance(packages, Missing):
        return True
    try:
        return not packages.origins or "pip" in packages.packages
    except NotStated:
        return True
