"""Checks whether the module that a command starts with `-m` exists in its package."""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple

from dsdoctor.api import LaunchCommand, RunNeeds
from dsdoctor.host import Host, HostError
from dsdoctor.interpreter import run_child

_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
#: Nothing is imported, but a cold network disk answers slowly.
SECONDS = 30.0
_ENDING = re.compile(r"\.(?:py|pyc|so|abi3\.so|cpython-[\w-]+\.so)$")


class Module(NamedTuple):
    """A missing module.

    Attributes:
        name: its name in the command.
        folder: the package that does not contain the next part of the name; "" = the interpreter
            finds no package of that name.
        near: the module that was most likely meant; "" = none is similar.
    """

    name: str
    folder: str
    near: str


def module_of(command: LaunchCommand) -> str:
    """The module that a command starts; "" = none."""
    name = command.script or ""
    words = command.argv
    at = words.index(name) if name in words else 0
    named = "module" in command.options or (at > 0 and words[at - 1] == "-m")
    return name if named and _NAME.fullmatch(name) else ""


def missing_module(host: Host, name: str, folders: tuple[str, ...]) -> Module | None:
    """The missing part of a module; None = it exists, or this is unknown without running code.

    Only regular packages are judged: a namespace package, and one that changes its `__path__`, may
    have parts elsewhere.

    Args:
        host: the machine with the folders.
        name: `torch.distributed.run`.
        folders: the interpreter's sys.path, the working folder first.
    """
    first, *parts = name.split(".")
    folder = next((one for one in folders if first in _names(host, one)), "")
    if not folder or not parts:
        return None
    package = posixpath.join(folder, first)
    done = first
    for part in parts:
        if not _regular(host, package):
            return None
        names = _names(host, package)
        if part not in names:
            return Module(name, package, _near(name, done, part, names))
        package, done = posixpath.join(package, part), f"{done}.{part}"
    return None


def unfound_module(host: Host, name: str, run: RunNeeds, executable: str) -> Module | None:
    """The module if the interpreter does not find its package; None = it does, or it is unknown.

    A child of the interpreter looks for it, since finders of the environment count; it imports
    nothing. In a shell script another folder, or PYTHONPATH, may have been set before.
    """
    if run.followed or run.batch or run.container is not None:
        return None
    first = name.partition(".")[0]
    try:
        records, _ = run_child(
            host, executable, "find_modules", [run.cwd, first], timeout=SECONDS, cwd=run.cwd
        )
    except HostError:
        return None
    return Module(name, "", "") if [r.get("found") for r in records] == [False] else None


def _near(name: str, done: str, part: str, names: set[str]) -> str:
    import difflib  # noqa: PLC0415  # only where a module is missing

    found = difflib.get_close_matches(part, sorted(names), 1, 0.7)
    rest = name[len(done) + 1 + len(part) :]
    return f"{done}.{found[0]}{rest}" if found else ""


def _names(host: Host, folder: str) -> set[str]:
    """Modules and folders in a folder."""
    try:
        return {_ENDING.sub("", entry) for entry in host.listdir(folder)}
    except HostError:
        return set()


def _regular(host: Host, package: str) -> bool:
    try:
        return b"__path__" not in host.read(posixpath.join(package, "__init__.py"))
    except HostError:
        return False
