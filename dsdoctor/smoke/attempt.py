"""One attempt to run a plan: what was done and observed, without a judgment."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from dsdoctor.model.smoke import PHASES
from dsdoctor.smoke.job import SmokePlan
from dsdoctor.smoke.track import Progress, Tracker

#: Called repeatedly with the slowest rank's phase, place in it, and share of it (None = unknown).
OnProgress = Callable[[str, str, float | None], None]


@dataclasses.dataclass(frozen=True)
class GpuError:
    """What the driver reported about a GPU.

    Attributes:
        words: for the reader.
        line: for the diagnosis; empty if the program is at fault, not the GPU.
    """

    words: str
    line: str = ""


@dataclasses.dataclass
class Attempt:
    """How one run went: observations only.

    Attributes:
        plan: what was run.
        argv, env: the real command and the variables set for it.
        tracker: what the ranks reported.
        reason: `ended`, `rank-died`, `rank-failed`, `hang`, `timeout`, `launcher-gone`,
            `not-started` or `interrupted`.
        returncode: of the launcher; negative = signal; None = dsdoctor ended it.
        orphans: ranks that still ran after the launcher had ended.
        overdue: ranks that were in one phase for too long.
        stacks: rank to stack.
        tails: rank to last lines.
        launcher_tail: last lines of the launcher.
        kernel: the kernel's messages about memory.
        gpu_errors: what the driver reported about the planned GPUs.
        folder: of the logs, until the attempt is cleaned up.
        seconds: wall time.
        started: when it began, in seconds since the epoch.
        error: why the launcher could not be started.
        leftovers: what could not be ended or removed.
        segments: names of shared memory that ranks had mapped.
        timeout: its time limit in seconds, without compiling.
    """

    plan: SmokePlan
    argv: tuple[str, ...]
    env: dict[str, str]
    tracker: Tracker
    folder: Path
    reason: str = "ended"
    returncode: int | None = None
    orphans: tuple[int, ...] = ()
    overdue: tuple[int, ...] = ()
    stacks: dict[int, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    tails: dict[int, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    launcher_tail: tuple[str, ...] = ()
    kernel: tuple[str, ...] = ()
    gpu_errors: tuple[GpuError, ...] = ()
    seconds: float = 0.0
    started: float = dataclasses.field(default_factory=time.time)
    error: str = ""
    leftovers: tuple[str, ...] = ()
    segments: set[str] = dataclasses.field(default_factory=set)
    timeout: float = 0.0


def culprit(ranks: list[Progress], stacks: Mapping[int, tuple[str, ...]]) -> Progress | None:
    """The rank that the others wait for: the least advanced, or the one outside any collective."""
    open_ranks = [progress for progress in ranks if not progress.done]
    if not open_ranks:
        return None
    least = min(PHASES.index(progress.phase) for progress in open_ranks)
    behind = [progress for progress in open_ranks if PHASES.index(progress.phase) == least]
    if len(behind) < len(open_ranks):
        return behind[0]
    waiting = ("distributed_c10d", "deepspeed/comm", "c10d_logger", "distributed/")
    for progress in behind:
        text = "\n".join(stacks.get(progress.rank, ())[:12])
        if text and not any(word in text for word in waiting):
            return progress
    return None
