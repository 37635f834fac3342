"""Ends everything that this process has started."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

from dsdoctor.process.marker import RUN_ID, carries_marker, marked_pids
from dsdoctor.process.signals import POSIX, signal_group, signal_one

#: How long a process may take to end after SIGKILL before it is abandoned.
KILL_SECONDS = 1.0
#: Children that have not been reaped, so that their pids, also those of their groups, are in use.
running: set[int] = set()
running_lock = threading.RLock()  # a signal handler may acquire it while it is held


def sweep(run_id: str = RUN_ID, *, seconds: float = KILL_SECONDS) -> tuple[int, ...]:
    """Kills every process with the marker; returns those that did not end."""
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
    """Reaps an orphan that has become a child of this process; does nothing for others."""
    with contextlib.suppress(ChildProcessError, OSError):
        os.waitpid(pid, os.WNOHANG)


def kill_all() -> None:
    """Kills every child that is running; for Ctrl-C and for the deadline of a whole command."""
    with running_lock:  # none of them is reaped meanwhile, so their pids are not reused
        for pid in running:
            signal_group(pid, signal.SIGKILL if POSIX else signal.SIGTERM)
    sweep()
    remove_scratch()


def remove_scratch(pid: int | None = None) -> None:
    """Removes the temporary folders of a child that could not do so itself; None = of all.

    The children of this package call them `dsdoctor-RUN-PID-…`.
    """
    mine = f"dsdoctor-{RUN_ID}-" + ("" if pid is None else f"{pid}-")
    with contextlib.suppress(OSError):  # without a usable temporary folder there are none
        for folder in Path(_temporary_folder()).glob(f"{mine}*"):
            _remove(folder)


def _temporary_folder() -> str:
    """`tempfile.gettempdir()`, even if a signal interrupted the import of `tempfile`."""
    import tempfile  # noqa: PLC0415  # only if a child was killed

    known = getattr(tempfile, "gettempdir", None)
    return known() if known else os.environ.get("TMPDIR") or "/tmp"  # noqa: S108  # only looked into


def _remove(folder: Path) -> None:
    import shutil  # noqa: PLC0415  # only if a child was killed

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
