"""When a job counts as hung, and where it waits."""

from __future__ import annotations

import collections
import contextlib
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dsdoctor import files, process
from dsdoctor.host.account import own_tool

#: CPU seconds per second, over all processes of the job, below which the job is idle; and the
#: allowance per rank for threads that only poll (those of a hung rank need a third of it).
IDLE_CPU, POLLING_CPU = 0.05, 0.01
#: GPU utilization in percent below which a GPU is idle.
IDLE_GPU = 5
STACK_SECONDS = 15.0
#: A job without any output is still starting: imports from a slow disk need no CPU time either.
STARTING_SECONDS = 60.0
#: Key of the notice that a hung job is being ended (`--on-hang stop`).
STOP = "stop"
#: In the folder of a run.
FOLDER = "stacks"
_FRAME = re.compile(r"^\s+(?P<function>[\w<>.]+) \((?P<file>[^():]+):(?P<line>\d+)\)")
#: Innermost frames of a rank that waits: the frame above shows the call.
_WAITING = re.compile(r"^(?:wait|_wait|synchronize|sleep|select|poll|acquire|recv|read)$")


class HangClock:
    """How long a job has neither written nor computed.

    Attributes:
        since: start of the idle time, in seconds of the samples' clock; None = not idle.
    """

    def __init__(self) -> None:
        self.since: float | None = None
        self._cpu: float | None = None
        self._time: float | None = None
        self._written = -1

    def feed(self, sample: Mapping[str, Any], written: int) -> float:
        """Adds a sample and the bytes written so far; returns the seconds of inactivity."""
        now = float(sample["t"])
        job, ranks = sample.get("job") or {}, sample.get("ranks") or ()
        cpu = float(job.get("cpu") or 0)
        # a process other than Python only waits for a job that cannot be seen, such as a container
        busy = written != self._written or job.get("python") is None
        if self._cpu is not None and self._time is not None and now > self._time:
            idle = IDLE_CPU + POLLING_CPU * len(ranks)
            busy = busy or (cpu - self._cpu) / (now - self._time) > idle or cpu < self._cpu
        busy = busy or any((gpu.get("util") or 0) > IDLE_GPU for gpu in sample.get("gpus") or ())
        self._cpu, self._time, self._written = cpu, now, written
        if busy:
            self.since = None
            return 0.0
        self.since = now if self.since is None else self.since
        return now - self.since


def stacks(folder: Path, ranks: Mapping[int, int]) -> dict[int, str]:
    """Stacks of ranks from py-spy, if it is installed and permitted; stored in the run's folder.

    Args:
        folder: `stacks` of the run.
        ranks: rank to its process.
    """
    beside = str(Path(sys.executable).parent)  # dsdoctor's own environment may not be active
    spy = own_tool("py-spy") or own_tool("py-spy", path=beside)
    found: dict[int, str] = {}
    if spy is None:
        return found
    files.make_folder(folder, mode=0o700)
    for rank, pid in sorted(ranks.items()):
        with contextlib.suppress(OSError):
            result = process.run(
                [spy, "dump", "--nonblocking", "--pid", str(pid)], timeout=STACK_SECONDS
            )
            if result.ok and result.stdout:
                found[rank] = result.text
                files.write(folder / f"rank-{rank}.txt", result.text, mode=0o600)
    return found


def where(stack: str) -> str:
    r"""The call in which the main thread waits, as `function (file:line)`; "" if unknown.

    >>> where('Thread 7 (idle): "MainThread"\n    all_reduce (c10d.py:9)\n    main (t.py:3)\n')
    'all_reduce (c10d.py:9)'
    """
    # a process that never had a second thread has no thread names
    main = stack.partition('"MainThread"')[2] or stack.partition("\nThread ")[2] or stack
    for line in main.splitlines()[1:]:
        if line.startswith("Thread "):
            break
        frame = _FRAME.match(line)
        if frame is not None and not _WAITING.match(frame["function"].rpartition(".")[2]):
            return f"{frame['function']} ({frame['file']}:{frame['line']})"
    return ""


def summary(found: Mapping[int, str], world: int) -> str:
    """Which ranks wait in the same call, and which do not: the others wait for those."""
    places = {rank: where(text) for rank, text in found.items()}
    groups = collections.Counter(place for place in places.values() if place)
    if not groups:
        return ""
    common, count = groups.most_common(1)[0]
    others = {rank: place for rank, place in sorted(places.items()) if place != common}
    if not others:
        return f"{count} of {world} ranks wait in {common}" if world > 1 else f"it is in {common}"
    rest = "; ".join(
        f"rank {rank} is in {place or 'no Python frame'}" for rank, place in others.items()
    )
    return f"{count} of {world} ranks wait in {common}; {rest}"
