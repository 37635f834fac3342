"""The environment variable that marks the processes which a run has started."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

MARKER = "DSDOCTOR_RUN"
#: The value of the marker for everything that this process starts.
RUN_ID = os.urandom(16).hex()


def marked(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment with the marker."""
    return {**(os.environ if env is None else env), MARKER: RUN_ID}


def marked_pids(run_id: str = RUN_ID) -> Iterator[int]:
    """Processes with the marker, except this one."""
    if not sys.platform.startswith("linux"):
        return
    me = os.getpid()
    for entry in os.scandir("/proc"):
        if (
            entry.name.isdigit()
            and int(entry.name) != me
            and carries_marker(int(entry.name), run_id)
        ):
            yield int(entry.name)


def carries_marker(pid: int, run_id: str = RUN_ID) -> bool:
    """Whether the process that now has this pid was started by a run."""
    return _has_variable(pid, f"{MARKER}={run_id}")


def is_rank(rank: int, pid: int) -> bool:
    """Whether the process that now has this pid is that rank, or was started by this run."""
    return _has_variable(pid, f"RANK={rank}") or carries_marker(pid)


def _has_variable(pid: int, word: str) -> bool:
    try:
        return word.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def become_subreaper() -> None:
    """Makes orphaned descendants children of this process, so that it can reap them."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # noqa: PLC0415  # 5 ms that --version need not pay

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
