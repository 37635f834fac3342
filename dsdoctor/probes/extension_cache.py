"""Reads the cache of JIT-built ops, and which builds run in it."""

from __future__ import annotations

import contextlib
import posixpath
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from dsdoctor.api import BuildLock, ExtensionCache, Missing, Patient, Why, probe
from dsdoctor.host import Host, HostError, home_folder, matches, real_path

#: Programs that work in a build folder while it is being built.
_BUILDERS = re.compile(
    r"(?:\S*-)?(?:ninja|nvcc|cicc|ptxas|fatbinary|cudafe\+\+|cc1(?:plus)?|collect2|gcc|g\+\+|cc|c\+\+"
    r"|clang(?:\+\+)?|as|ld(?:\.\w+)?|hipcc)(?:-[\d.]+)?(?:\.exe)?",
)


def cache_root(host: Host) -> tuple[str, bool]:
    """Where torch puts JIT-built ops, and whether TORCH_EXTENSIONS_DIR sets that."""
    given = host.env.get("TORCH_EXTENSIONS_DIR")
    if given:
        return given.rstrip("/") or "/", True
    home = home_folder(host)
    if host.system == "Darwin":
        return f"{home}/Library/Caches/torch_extensions", False
    cache = host.env.get("XDG_CACHE_HOME") or f"{home}/.cache"
    return f"{cache.rstrip('/')}/torch_extensions", False


def python_tag(version: str) -> str | None:
    """How the cache's folders for a Python version begin.

    >>> python_tag("3.11.7"), python_tag("?")
    ('py311_', None)
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    return f"py{found[1]}{found[2]}_" if found else None


def builders_in(folder: str, processes: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Pids of compilers and build tools that work in a folder, and of the holder of its lock.

    torch keeps the lock file open from the beginning of a build to its end (`FileBaton` of
    torch/utils/file_baton.py); those that wait for it do not open it.

    >>> builders_in("/c/op", [
    ...     {"pid": 1, "name": "ninja", "argv": ["ninja", "-v"], "cwd": "/c/op"},
    ...     {"pid": 2, "name": "bash", "argv": ["bash"], "cwd": "/c/op"},
    ...     {"pid": 3, "name": "ninja", "argv": ["ninja"], "cwd": "/elsewhere"},
    ...     {"pid": 4, "name": "python", "locks": ["/c/op/lock"]},
    ... ])
    (1, 4)
    """
    inside = re.compile(re.escape(folder.rstrip("/")) + r"(?:/|$|\s)")
    found: list[int] = []
    for process in processes:
        argv = [str(word) for word in process.get("argv") or ()]
        names = {str(process.get("name", "")), posixpath.basename(argv[0]) if argv else ""}
        if f"{folder.rstrip('/')}/lock" in process.get("locks", ()):
            found.append(int(process["pid"]))
            continue
        if not any(_BUILDERS.fullmatch(name) for name in names):
            continue
        if any(inside.search(text) for text in (str(process.get("cwd", "")), *argv)):
            found.append(int(process["pid"]))
    return tuple(found)


def _lock(host: Host, path: str, processes: Sequence[Mapping[str, Any]]) -> BuildLock | None:
    try:
        made = host.stat(path).mtime
    except HostError:
        return None  # its build has just ended
    folder = posixpath.dirname(path)
    builders = {*builders_in(folder, processes), *builders_in(real_path(host, folder), processes)}
    return BuildLock(
        path=path,
        op=posixpath.basename(folder),
        age_seconds=max(0.0, time.time() - made),
        builders=tuple(sorted(builders)),
    )


def _writable(host: Host, path: str) -> bool:
    """Whether a folder, or else the nearest parent that exists, may be written to."""
    while True:
        try:
            found = host.stat(path)
        except HostError as error:
            parent = posixpath.dirname(path)
            if error.missing.why is not Why.ABSENT or parent == path:
                return False
            path = parent
            continue
        return found.kind == "dir" and found.writable


@probe
def extension_cache(host: Host, patient: Patient | Missing) -> ExtensionCache:
    """The cache of JIT-built ops: its place, its content, and running builds."""
    if host.system == "Windows":
        raise HostError(Why.UNSUPPORTED, "the cache of built ops is not examined on Windows")
    root, from_env = cache_root(host)
    if from_env:
        folders = f"{root}/*"  # torch adds no sub-folder for the Python and CUDA versions there
    else:
        # a lock of another Python version does not block builds here
        tag = python_tag(patient.version) if isinstance(patient, Patient) else None
        folders = f"{root}/{tag or 'py'}*/*"
    locks = matches(host, f"{folders}/lock")
    processes: list[dict[str, Any]] = []
    if locks:
        with contextlib.suppress(HostError):
            processes = list(host.query("processes"))
    libraries = matches(host, f"{folders}/*.so")
    built = {posixpath.basename(posixpath.dirname(path)) for path in libraries}
    free = None
    with contextlib.suppress(HostError):
        free = host.disk(root).free
    return ExtensionCache(
        root=root,
        from_env=from_env,
        writable=_writable(host, root),
        locks=tuple(lock for path in locks if (lock := _lock(host, path, processes))),
        built=tuple(sorted(built)),
        free_bytes=free,
    )
