"""The command that installs into the environment that was examined, for hints."""

from __future__ import annotations

import shlex

from packaging.version import InvalidVersion, Version

from dsdoctor.api import Missing, NotStated, Packages, Patient
from dsdoctor_checks._util import at_least

#: What the setup of DeepSpeed and flash-attn imports, besides torch.
_BUILD_TOOLS = frozenset({"packaging", "setuptools", "wheel"})
#: The first torch whose builder of extensions does without `pkg_resources`: up to 2.1.2 it imports
#: `packaging` from there (utils/cpp_extension.py of the wheels 1.11.0 to 2.3.1, read 2026-11-30).
_WITHOUT_PKG_RESOURCES = "2.2"
#: setuptools whose `pkg_resources` has `packaging` (69.5.1 to 82.0.0 tried with torch 2.1.2,
#: 2026-11-30: not 70, and 82 has no `pkg_resources`).
_OLD_SETUPTOOLS = "<82,!=70.*"


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
        lacking = _lacking(known) if known else []
    except NotStated:
        lacking = []
    if not lacking:
        return build
    # a command that installs pip first did so
    again = build.rpartition(" && ")[2]
    wanted = " ".join(shlex.quote(name) for name in lacking)
    return f"{pip(patient, packages, f'install {wanted}')} && {again}"


def setuptools_for(torch: str | None) -> str:
    """The requirement that torch's builder of extensions has of setuptools.

    >>> setuptools_for("2.1.2+cu121"), setuptools_for("2.2.0")
    ('setuptools<82,!=70.*', 'setuptools')
    """
    return f"setuptools{_of_setuptools(torch)}"


def setuptools_serves(torch: str | None, installed: str) -> bool:
    """Whether torch's builder of extensions can be imported with this release of setuptools.

    >>> [setuptools_serves("2.1.2", release) for release in ("69.5.1", "70.3.0", "81.0.0", "82.0.0")]
    [True, False, True, False]
    >>> setuptools_serves("2.2.0", "82.0.0"), setuptools_serves("2.1.2", "unknown")
    (True, False)
    """
    wanted = _of_setuptools(torch)
    if not wanted:
        return True
    from packaging.specifiers import SpecifierSet  # noqa: PLC0415  # few environments are so old

    try:
        return SpecifierSet(wanted).contains(Version(installed), prereleases=True)
    except InvalidVersion:
        return False


def _of_setuptools(torch: str | None) -> str:
    """The releases of setuptools with which torch's builder can be imported; "" = any."""
    old = torch is not None and not at_least(torch, _WITHOUT_PKG_RESOURCES)
    return _OLD_SETUPTOOLS if old else ""


def _lacking(packages: Packages) -> list[str]:
    """The build tools that are not installed, or too new for the installed torch."""
    torch, installed = packages.version("torch"), packages.version("setuptools")
    missing = _BUILD_TOOLS - packages.packages.keys()
    if installed and not setuptools_serves(torch, installed):
        missing |= {"setuptools"}
    return sorted(setuptools_for(torch) if name == "setuptools" else name for name in missing)


def _has_pip(packages: Packages | Missing) -> bool:
    """Whether the environment has pip, as far as its packages were read."""
    if isinstance(packages, Missing):
        return True
    try:
        return not packages.origins or "pip" in packages.packages
    except NotStated:
        return True
