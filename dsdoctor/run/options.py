"""The options of `dsdoctor run`."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from dsdoctor.errors import UsageError

#: The exit status if the preflight check fails. No launcher uses it: deepspeed and
#: torchrun exit with 1 or with a rank's own status, Python with 1, 2 or 120, shells with 126 and
#: above, timeout(1) with 124 and 125; sysexits.h ends at 78.
REFUSED = 79
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a command is run.

    Attributes:
        command: the command, as typed.
        preflight: `quick`, `full` or `off`.
        force: start although the check fails.
        announce: set variables that enable dumps.
        every: seconds between samples.
        hang_after: seconds without output and work after which the job counts as hung; 0 = never.
        on_hang: `report` or `stop`.
        restarts: how often a run that died of a transient cause is started again.
        requeue: restart by requeueing the Slurm job.
        base: folder of all runs.
        metrics: file for Prometheus' textfile collector, rewritten with each sample.
        quiet: report nothing while the job runs.
        language: of the cause and the hint; None = English.
    """

    command: tuple[str, ...]
    preflight: str = "quick"
    force: bool = False
    announce: bool = True
    every: float = 2.0
    hang_after: float = 900.0
    on_hang: str = "report"
    restarts: int = 0
    requeue: bool = False
    base: Path = dataclasses.field(default_factory=Path)
    metrics: Path | None = None
    quiet: bool = False
    language: str | None = None


def seconds_of(text: str, option: str) -> float:
    """A duration as `90`, `90s`, `15m` or `1h`, in seconds.

    Raises:
        UsageError: it is not one.

    >>> seconds_of("15m", "--hang-after")
    900.0
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    if found is None:
        raise UsageError(
            f"`{option} {text}` is not a duration; expected one such as `90s` or `15m`"
        )
    return float(found[1]) * _UNITS[found[2]]
