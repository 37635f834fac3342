"""What an epilog knows of its job, and whether the processes that it left are still there.

Standard library only: the supervisor and the health program are lean.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dsdoctor import proc_stat
from dsdoctor.hook.rundir import RunFolder

#: How often a process that is ending is looked at.
_POLL = 0.1


def describe(env: Mapping[str, str], folder: RunFolder, node: str, job: str) -> dict[str, Any]:
    """The job that has ended, as Slurm's environment and the note of its prolog describe it.

    Returns:
        the fields of the fact `JobEnd`.
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


def is_there(pid: int, started: int) -> bool:
    """Whether a process still runs: one of this number and this start time that has not ended."""
    try:
        found = proc_stat.parse(Path(f"/proc/{pid}/stat").read_bytes())
    except (OSError, ValueError):
        return False
    return found.state != "Z" and found.started == started


def wait(left: list[tuple[int, int]], until: float) -> list[tuple[int, int]]:
    """Waits for processes to end, and returns those that have not.

    Slurm starts the epilog when its job's processes have been killed; a process whose driver still
    frees its memory is there for some seconds more.

    Args:
        left: process ids with start times.
        until: end of the wait, on the monotonic clock.
    """
    while left := [one for one in left if is_there(*one)]:
        if time.monotonic() >= until:
            break
        time.sleep(_POLL)
    return left


def left_behind(stamp: Mapping[str, Any] | None) -> list[int]:
    """Processes named in the stamp of an epilog that still run."""
    rows = stamp.get("left", ()) if stamp else ()
    return [int(pid) for pid, started in rows if is_there(int(pid), int(started))]
