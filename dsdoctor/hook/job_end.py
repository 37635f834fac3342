"""What an epilog knows about its job, and whether processes that the job left are still running.

Standard library only: the supervisor and the health program start quickly.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dsdoctor import proc_stat
from dsdoctor.hook.rundir import RunFolder

#: Interval for looking at a process that is ending, in seconds.
_POLL = 0.1


def describe(env: Mapping[str, str], folder: RunFolder, node: str, job: str) -> dict[str, Any]:
    """The job that has ended, from Slurm's environment and the note of its prolog.

    Returns:
        The fields of the fact `JobEnd`.
    """
    noted = folder.jobs(node)
    mine = noted.pop(job, {})
    number = env.get("SLURM_JOB_UID", "")
    uid = int(number) if number.isdecimal() else None
    begun = mine.get("time")
    since = folder.epilogs_since()
    return {
        "job": job,
        "user": env.get("SLURM_JOB_USER", ""),
        "uid": uid,
        "begun": begun if isinstance(begun, int | float) else None,
        "ecc": mine.get("ecc", {}),
        "others": sorted(
            other
            for other, note in noted.items()
            if uid is not None
            and note.get("uid") == uid
            and note.get("decision") != "block"
            and float(note.get("time", 0.0)) >= since
        ),
    }


def is_running(pid: int, started: int) -> bool:
    """Whether a process with this pid and this start time exists and has not ended."""
    try:
        found = proc_stat.parse(Path(f"/proc/{pid}/stat").read_bytes())
    except (OSError, ValueError):
        return False
    return found.state != "Z" and found.started == started


def wait(left: list[tuple[int, int]], until: float) -> list[tuple[int, int]]:
    """Waits for processes to end, and returns those that have not.

    Slurm starts the epilog after it has killed the job's processes; a process whose memory the
    driver still frees may take some seconds more.

    Args:
        left: process ids with start times.
        until: end of the wait, on the monotonic clock.
    """
    while left := [one for one in left if is_running(*one)]:
        if time.monotonic() >= until:
            break
        time.sleep(_POLL)
    return left


def left_behind(stamp: Mapping[str, Any] | None) -> list[int]:
    """Processes listed in the stamp of an epilog that still run."""
    rows = stamp.get("left", ()) if stamp else ()
    return [int(pid) for pid, started in rows if is_running(int(pid), int(started))]
