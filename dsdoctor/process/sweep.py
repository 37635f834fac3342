"""The end of everything that this process has started."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

from dsdoctor.process.marker import RUN_ID, carries_marker, marked_pids
from dsdoctor.process.signals import POSIX, signal_group, signal_one

#: How long a process may take to die of SIGKILL before it is abandoned.
KILL_SECONDS = 1.0
#: Children that have not been waited for: the numbers are theirs, and so are those of their groups.
running: set[int] = set()
running_lock = threading.RLock()  # a signal handler may come to it while it is held


def sweep(run_id: str = RUN_ID, *, seconds: float = KILL_SECONDS) -> tuple[int, ...]:
    """Kills every process that carries the marker; returns those that would not die."""
    deadline = time.monotonic() + seconds
    while True:
        left = tuple(marked_pids(run_id))
        if not left or time.monotonic() > deadline:
            return left
        for pid in left:
            signal_one(pid, signal.SIGKILL, lambda found: carries_marker(found, run_id))
        time.sleep(0.02)
        for pid in left:
            _reap(pid)


def _reap(pid: int) -> None:
    """Takes the status of an orphan that became ours; others are not ours to wait for."""
    with contextlib.suppress(ChildProcessError, OSError):
        os.waitpid(pid, os.WNOHANG)


def kill_all() -> None:
    """Kills every child that is running now; for Ctrl-C and for the end of the whole deadline."""
    with running_lock:  # none of them is waited for meanwhile, so the numbers are still theirs
        for pid in running:
            signal_group(pid, signal.SIGKILL if POSIX else signal.SIGTERM)
    sweep()
    remove_scratch()


def remove_scratch(pid: int | None = None) -> None:
    """Removes the temporary folders of a child that could not do so itself; of all with None.

    Our children name them `dsdoctor-RUN-PID-…`.
    """
    mine = f"dsdoctor-{RUN_ID}-" + ("" if pid is None else f"{pid}-")
    with contextlib.suppress(OSError):  # no usable folder for temporary files: none of ours either
        for folder in Path(_temporary_folder()).glob(f"{mine}*"):
            _remove(folder)


def _temporary_folder() -> str:
    """As `tempfile` says; a signal may have come in the middle of its import."""
    import tempfile  # noqa: PLC0415  # only where a child has died

    known = getattr(tempfile, "gettempdir", None)
    return known() if known else os.environ.get("TMPDIR") or "/tmp"  # noqa: S108  # only looked into


def _remove(folder: Path) -> None:
    import shutil  # noqa: PLC0415  # only where a child has died

    if hasattr(shutil, "rmtree"):
        shutil.rmtree(folder, ignore_errors=True)
        return
    for _, folders, names, handle in os.fwalk(folder, topdown=False):  # it follows no link
        for name in names:
            os.unlink(name, dir_fd=handle)
        for name in folders:
            try:
                os.rmdir(name, dir_fd=handle)
            except NotADirectoryError:  # a link
                os.unlink(name, dir_fd=handle)
    folder.rmdir()
