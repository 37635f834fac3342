"""Platform values that a probe may ask for by name."""

from __future__ import annotations

import contextlib
import os
import platform
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dsdoctor.errors import FOLDER_GONE
from dsdoctor.host import addresses
from dsdoctor.host.door import HostError
from dsdoctor.model.facts.base import Why


def _limits() -> dict[str, int | None]:
    try:
        import resource  # noqa: PLC0415  # not on Windows
    except ImportError:
        return {}
    wanted = {
        "memlock": "RLIMIT_MEMLOCK",
        "nofile": "RLIMIT_NOFILE",
        "stack": "RLIMIT_STACK",
        "address_space": "RLIMIT_AS",
        "nproc": "RLIMIT_NPROC",
    }
    found: dict[str, int | None] = {}
    for name, constant in wanted.items():
        number = getattr(resource, constant, None)
        if number is None:
            continue
        soft = resource.getrlimit(number)[0]
        found[name] = None if soft == resource.RLIM_INFINITY else soft
    return found


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory() -> dict[str, int]:
    import psutil  # noqa: PLC0415  # costs 15 ms that --version need not pay

    memory = psutil.virtual_memory()
    return {
        "total": int(memory.total),
        "available": int(memory.available),
        "swap": int(psutil.swap_memory().total),
    }


def _processes() -> list[dict[str, Any]]:
    """Every readable process: pid, name, argv, cwd and open lock files.

    `locks` are the open files called `lock`: torch keeps that of a build open until the build ends.
    """
    import psutil  # noqa: PLC0415  # costs 15 ms

    rows: list[dict[str, Any]] = []
    for entry in psutil.process_iter(["pid", "name", "cmdline", "cwd"]):
        info = entry.info
        rows.append(
            {
                "pid": info["pid"],
                "name": info["name"] or "",
                "argv": list(info["cmdline"] or ()),
                "cwd": info["cwd"] or "",
                "locks": _open_locks(info["pid"]),
            },
        )
    return rows


def _open_locks(pid: int) -> list[str]:
    found: list[str] = []
    folder = f"/proc/{pid}/fd"
    with contextlib.suppress(OSError):  # of another user, gone, or not Linux
        for name in os.listdir(folder):  # noqa: PTH208  # many: no objects for them
            with contextlib.suppress(OSError):
                target = os.readlink(f"{folder}/{name}")  # noqa: PTH115
                if target.endswith("/lock"):
                    found.append(target)
    return found


def _cwd() -> str:
    """The working folder.

    Raises:
        HostError: it has been removed.
    """
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        raise HostError(Why.ABSENT, FOLDER_GONE) from None


QUERIES: dict[str, Callable[[], Any]] = {
    "addresses": addresses.by_interface,
    "release": platform.release,
    "machine": platform.machine,
    "hostname": lambda: socket.gethostname().split(".")[0],
    "libc": lambda: " ".join(platform.libc_ver()).strip() or None,
    "cpu_count": lambda: os.cpu_count() or 1,
    "affinity": _affinity,
    "memory": _memory,
    "limits": _limits,
    "clock": time.time,
    "euid": lambda: os.geteuid() if hasattr(os, "geteuid") else -1,
    "home": lambda: os.path.expanduser("~"),  # noqa: PTH111  # Path.home() raises without a HOME
    "cwd": _cwd,
    "executable": lambda: sys.executable,
    "prefix": lambda: sys.prefix,
    "processes": _processes,
}
