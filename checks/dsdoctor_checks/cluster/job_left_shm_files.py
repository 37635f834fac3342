"""A job that has ended left files in /dev/shm.

## Why it matters
The files are in RAM: the memory stays in use until they are removed or the node reboots. After a few
such jobs, /dev/shm or the node's memory is full, and jobs of other users fail.

## What to do
Remove the files, as root in the epilog of the site or as their owner. In Slurm, the plugin
`job_container/tmpfs` gives each job a /dev/shm of its own, which ends with the job.

## References
- shm_overview(7); job_container.conf(5), Slurm 22.05
- Checked only by `dsdoctor hook slurm-epilog`, and only if no other job of the user runs on the node
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, Finding, JobRemains, Limits, Scope, check, ok, skip, warn
from dsdoctor_checks._util import amount
from dsdoctor_checks.host._util import MIB

CONDITION = Condition(
    "job-left-shm-files",
    id="DSD1607",
    scope=Scope.NODE,
    since="0.1",
    leads_to=("shm-nearly-full", "stale-shm-segments"),
)
#: Names in the evidence; a data loader that was killed leaves thousands.
_NAMED = 20


class ShmLimits(Limits, frozen=True, kw_only=True):
    """How much is worth a line.

    Attributes:
        min_mib: all files together; semaphores take a few bytes.
    """

    min_mib: float = 1


@check(CONDITION)
def shm_is_released(remains: JobRemains, limits: ShmLimits) -> Iterator[Finding]:
    """Warns about files of the job's user if no other job can own them."""
    if remains.others:
        yield skip(
            f"job {', '.join(remains.others)} of the same user runs on this node, and files in "
            "/dev/shm may belong to it"
        )
        return
    count, size = len(remains.shm), sum(remains.shm.values()) // MIB
    if size < limits.min_mib:
        yield ok(files=count, mib=size)
        return
    since = "created since it began" if remains.begun is not None else "owned by the same user"
    yield warn(
        f"job {remains.job}{f' of {remains.user}' if remains.user else ''} left {amount(count, 'file')} "
        f"in /dev/shm ({size} MiB), {since}; no other job of that user runs here",
        effect="the memory stays in use until the files are removed or the node reboots",
        hint="remove the files as root or as their owner",
        files=count,
        mib=size,
        left=dict(list(remains.shm.items())[:_NAMED]),
        min_mib=limits.min_mib,
    )
