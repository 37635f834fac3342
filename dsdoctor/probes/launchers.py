"""Reads the launchers on PATH, and what LD_LIBRARY_PATH puts before torch's libraries."""

from __future__ import annotations

import posixpath
import re
import shlex

from dsdoctor.api import (
    Launcher,
    Launchers,
    LibraryPath,
    LibraryShadow,
    Patient,
    Why,
    probe,
)
from dsdoctor.host import Host, HostError, exists, real_path

NAMES = ("deepspeed", "torchrun", "accelerate", "python", "python3")
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*[tw]?(?:\.exe)?")


def parse_shebang(head: str) -> str | None:
    r"""Interpreter of a script; a bare name if `env` looks it up. None = not a script.

    If the path is too long or contains spaces, installers write a file that is both shell and
    Python.

    >>> parse_shebang("#!/opt/env/bin/python3.11\nimport sys\n")
    '/opt/env/bin/python3.11'
    >>> parse_shebang("#!/usr/bin/env -S python3 -s\n")
    'python3'
    >>> parse_shebang("#!/bin/sh\n'''exec' \"/my env/bin/python\" \"$0\" \"$@\"\n' '''\n")
    '/my env/bin/python'
    >>> parse_shebang("\x7fELF")
    """
    if not head.startswith("#!"):
        return None
    lines = head.splitlines()
    words = lines[0][2:].split()
    if not words:
        return None
    name = posixpath.basename(words[0])
    if name == "env":
        rest = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        return rest[0] if rest else None
    if name in {"sh", "bash", "dash"} and len(lines) > 1:
        found = re.match(r"""\s*'{2,3}exec'\s+(.+)$""", lines[1])
        if found:
            try:
                return shlex.split(found[1])[0]
            except (ValueError, IndexError):
                return found[1].split()[0].strip("\"'")
    return words[0]


def identity(host: Host, executable: str) -> tuple[str, str]:
    """The identity of an environment.

    In a virtual environment it is the folder, because its python is a link to the interpreter that
    created it; otherwise it is the file that all links lead to.
    """
    prefix = posixpath.dirname(posixpath.dirname(posixpath.normpath(executable)))
    if exists(host, posixpath.join(prefix, "pyvenv.cfg")):
        return "venv", real_path(host, prefix)
    return "file", real_path(host, executable)


def _of_patient(host: Host, patient: Patient) -> tuple[str, str]:
    if patient.kind == "venv" and patient.prefix:
        return "venv", real_path(host, patient.prefix)
    return identity(host, patient.executable)


def same_env(host: Host, interpreter: str, patient: Patient) -> bool | None:
    """Whether an interpreter is the one examined; None if that is unknown (a shell wrapper)."""
    if not _PYTHON.fullmatch(posixpath.basename(interpreter)):
        return None
    path = interpreter if "/" in interpreter else host.which(interpreter)
    if path is None or not exists(host, path):
        return False
    return identity(host, path) == _of_patient(host, patient)


def _is_there(host: Host, path: str) -> bool | None:
    """Whether an absolute path exists; None if it cannot be read."""
    try:
        host.stat(path)
    except HostError as error:
        return False if error.missing.why is Why.ABSENT else None
    return True


def _launcher(host: Host, name: str, patient: Patient) -> Launcher:
    path = host.which(name)
    if path is None:
        return Launcher(name=name)
    try:
        head = host.read(path)[:4096].decode("utf-8", "replace")
    except HostError:
        return Launcher(name=name, path=path)
    interpreter = parse_shebang(head)
    if interpreter is None:
        binary = path if name.startswith("python") else None
        same = None if binary is None else same_env(host, binary, patient)
        return Launcher(name=name, path=path, same_env=same)
    if "/" not in interpreter:
        interpreter = host.which(interpreter) or interpreter
    return Launcher(
        name=name,
        path=path,
        interpreter=interpreter,
        interpreter_exists=_is_there(host, interpreter) if interpreter.startswith("/") else None,
        same_env=same_env(host, interpreter, patient),
    )


@probe
def launchers(host: Host, patient: Patient) -> Launchers:
    """The launchers that a user starts by name, and their environments."""
    if host.system == "Windows":
        raise HostError(Why.UNSUPPORTED, "launchers on PATH are not read on Windows")
    return Launchers(launchers=tuple(_launcher(host, name, patient) for name in NAMES))


def parse_path(value: str) -> tuple[str, ...]:
    """Folders of LD_LIBRARY_PATH, each once.

    >>> parse_path("/a:/b/::/a")
    ('/a', '/b')
    """
    folders = (folder.rstrip("/") or "/" for folder in value.split(":") if folder)
    return tuple(dict.fromkeys(folders))


def _names(host: Host, folder: str) -> list[str]:
    try:
        return [name for name in host.listdir(folder) if ".so" in name]
    except HostError:
        return []


def _own_libraries(host: Host, patient: Patient) -> dict[str, tuple[str, str]]:
    """The libraries of torch and its CUDA wheels: maps a name to owner and file."""
    found: dict[str, tuple[str, str]] = {}
    for site in patient.sys_path:
        folder = posixpath.join(site, "torch", "lib")
        names = _names(host, folder) if site.startswith("/") else []
        if not names:
            continue
        for name in names:
            found.setdefault(name, ("torch", posixpath.join(folder, name)))
        try:
            wheels = host.glob(posixpath.join(site, "nvidia", "*", "lib", "*.so*"))
        except HostError:
            wheels = []
        for path in wheels:
            owner = "/".join(path.split("/")[-4:-2])
            found.setdefault(posixpath.basename(path), (owner, path))
        break
    return found


def _preloaded(value: str) -> list[str]:
    return [path for path in re.split(r"[ :]+", value) if path.startswith("/")]


def parse_release(path: str) -> str | None:
    """The release in a library's file name.

    >>> parse_release("/usr/lib/libnccl.so.2.18.3"), parse_release("/usr/lib/libnccl.so.2")
    ('2.18.3', None)
    """
    found = re.search(r"\.so\.(\d+(?:\.\d+)+)$", path)
    return found[1] if found else None


def _cxx_runtime(
    host: Host, patient: Patient, entries: tuple[str, ...]
) -> tuple[str | None, int | None]:
    """The libstdc++ that comes before the system's, with its release; None if two differ.

    The python of a conda environment looks in its own `lib`, in a virtual environment too. Which of
    the two places wins depends on how the libraries were linked.
    """
    prefixes = {patient.prefix, patient.base_prefix}
    conda = [f"{one}/lib" for one in prefixes if one and exists(host, f"{one}/conda-meta")]
    found: dict[str, int] = {}
    for folder in (*entries, *conda):
        path = posixpath.join(folder, "libstdc++.so.6")
        named = re.search(r"libstdc\+\+\.so\.6\.0\.(\d{1,3})$", real_path(host, path))
        if named and exists(host, path):
            found.setdefault(path, int(named[1]))
    if len(set(found.values())) != 1:
        return None, None
    return next(iter(found.items()))


@probe
def library_path(host: Host, patient: Patient) -> LibraryPath:
    """Libraries that the environment puts before those of torch."""
    if host.system != "Linux":
        raise HostError(Why.UNSUPPORTED, f"`LD_LIBRARY_PATH` is not used on {host.system}")
    entries = parse_path(host.env.get("LD_LIBRARY_PATH", ""))
    preload = _preloaded(host.env.get("LD_PRELOAD", ""))
    runtime, release = _cxx_runtime(host, patient, entries)
    if not entries and not preload:
        return LibraryPath(cxx_runtime=runtime, cxx_release=release)
    own = _own_libraries(host, patient)
    paths = [path for path in preload if posixpath.basename(path) in own]
    if own:
        for folder in entries:
            paths += [posixpath.join(folder, name) for name in _names(host, folder) if name in own]
    shadows: dict[str, LibraryShadow] = {}
    for path in paths:
        name = posixpath.basename(path)
        owner, mine = own[name]
        real = real_path(host, path)
        if exists(host, path) and real != real_path(host, mine):
            shadow = LibraryShadow(name=name, path=path, owner=owner, version=parse_release(real))
            shadows.setdefault(name, shadow)
    return LibraryPath(
        entries=entries,
        shadows=tuple(shadows.values()),
        cxx_runtime=runtime,
        cxx_release=release,
    )
