"""Processes of a job that has ended still use a GPU.

## Why it matters
The scheduler assigns the GPU to the next job, but the memory that these processes hold is not
available to it. The job fails with `CUDA out of memory`, or both programs run slower. Slurm kills only
the processes that it tracks. Processes of a container engine, and those in state D, survive.

## What to do
Run `kill -9 PID`. A process in state D waits for the driver or for a disk, and ends only when that
answers, or when the node reboots. `ProctrackType=proctrack/cgroup` tracks processes that leave
their session.

## References
- slurm.conf(5), Slurm 22.05: Epilog, ProctrackType, UnkillableStepProgram
- Checked only by `dsdoctor hook slurm-epilog`
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, Finding, JobRemains, Limits, Scope, check, fail, ok, warn
from dsdoctor_checks._util import listed
from dsdoctor_checks.host._util import MIB

CONDITION = Condition("job-left-gpu-busy", id="DSD1606", scope=Scope.NODE, since="0.1")


class LeftLimits(Limits, frozen=True, kw_only=True):
    """What a process may keep of a GPU.

    Attributes:
        max_process_mib: up to this size it is reported but does not fail: the context of a program
            that computes nothing.
    """

    max_process_mib: float = 256


@check(CONDITION)
def gpus_are_released(remains: JobRemains, limits: LeftLimits) -> Iterator[Finding]:
    """Fails for processes that certainly belong to the job and hold memory; warns for others."""
    for process in remains.processes:
        used = None if process.used_bytes is None else process.used_bytes // MIB
        grave = process.certain and (used is None or used > limits.max_process_mib)
        size = "" if used is None else f" ({used} MiB)"
        owner = (
            f"its process {process.pid} (`{process.name}`)"
            if process.certain
            else f"process {process.pid} (`{process.name}`) of its user {remains.user}"
        )
        yield (fail if grave else warn)(
            f"job {remains.job} has ended, but {owner} still uses GPU{'s' if len(process.gpus) > 1 else ''} {listed(process.gpus)}{size}",
            effect="the next job on the GPU runs out of memory, or both run slower",
            hint=f"run `kill -9 {process.pid}`{'' if process.certain else ' if it is left over from the job'}, "
            "and reboot the node if the process stays",
            pid=process.pid,
            started=process.started,
            gpus=list(process.gpus),
            used_mib=used,
            max_process_mib=limits.max_process_mib,
        )
    if not remains.processes:
        yield ok(job=remains.job)
