"""What the kernel reports about a process in `/proc/PID/stat` and `/proc/PID/cgroup` (proc(5)).

Standard library only: hooks read it before they load anything else.
"""

from __future__ import annotations

import re
from typing import NamedTuple

#: Position of `starttime` after the name, which may contain blanks and parentheses itself.
_STARTED = 19


#: Slurm's name for the cgroup of a job, in v1 and v2 (Slurm 22.05 to 26.05, cgroup.conf).
_CGROUP_OF_JOB = re.compile(r"/job_(\d+)(?:/|$)", re.MULTILINE)


def slurm_job(cgroup: str) -> str:
    r"""The Slurm job in whose cgroup a process is, from `/proc/PID/cgroup`; empty if in none.

    >>> slurm_job("0::/system.slice/slurmstepd.scope/job_12/step_0/user/task_0\n")
    '12'
    """
    found = _CGROUP_OF_JOB.search(cgroup)
    return found[1] if found else ""


class ProcStat(NamedTuple):
    """The fields that dsdoctor uses.

    Attributes:
        name: of the program, at most 15 characters.
        state: one letter; `Z` and `X` = it has ended.
        started: clock ticks from boot to its start; with the pid it identifies the process.
    """

    name: str
    state: str
    started: int


def parse(data: bytes) -> ProcStat:
    """Parses the content of the file.

    >>> parse(b"7 (python 3) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0")
    ProcStat(name='python 3', state='S', started=4711)

    Raises:
        ValueError: it has too few fields.
    """
    head, _, rest = data.rpartition(b")")
    fields = rest.split()
    if len(fields) <= _STARTED:
        raise ValueError(f"{len(fields)} fields after the name")
    name = head.partition(b"(")[2].decode("utf-8", "replace")
    return ProcStat(name, fields[0].decode("ascii", "replace"), int(fields[_STARTED]))
