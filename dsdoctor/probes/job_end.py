"""Reads what a finished job left on this node; only an epilog needs it."""

from __future__ import annotations

import re
import time

from dsdoctor import proc_stat
from dsdoctor.api import Gpus, KernelLog, Missing, probe
from dsdoctor.host import Host, HostError
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.job_end import JobEnd, JobRemains, LeftProcess
from dsdoctor.model.facts.kernel_log import XidEvent
from dsdoctor.probes.memory import SHM, is_job_segment

_VARIABLE = re.compile(rb"(?:^|\0)SLURM_JOB_ID=(\d+)(?:\0|$)")


def job_of(cgroup: str, environ: bytes) -> str:
    r"""The Slurm job of a process from its cgroup or its environment; empty if unknown.

    >>> job_of("0::/system.slice/slurmstepd.scope/job_12/step_0/user/task_0\n", b"")
    '12'
    >>> job_of("0::/user.slice\n", b"HOME=/\0SLURM_JOB_ID=7\0"), job_of("", b"X=SLURM_JOB_ID=7\0")
    ('7', '')
    """
    if job := proc_stat.slurm_job(cgroup):
        return job
    variable = _VARIABLE.search(environ)
    return variable[1].decode() if variable else ""


def _read(host: Host, path: str) -> bytes:
    try:
        return host.read(path)
    except HostError:
        return b""


def _job(host: Host, pid: str, end: JobEnd) -> str:
    """The Slurm job of a process; its environment counts only if it runs as the job's owner.

    The environment is written by whoever starts the process, and another account must not be able
    to drain a node.
    """
    cgroup = _read(host, f"/proc/{pid}/cgroup").decode("utf-8", "replace")
    owned = end.uid is not None and _uid(host, pid) == end.uid
    return job_of(cgroup, _read(host, f"/proc/{pid}/environ") if owned else b"")


def _uid(host: Host, pid: str) -> int | None:
    try:
        return host.stat(f"/proc/{pid}").uid
    except HostError:
        return None


def other_jobs(host: Host, end: JobEnd) -> set[str]:
    """Jobs of the same owner that have processes on this node."""
    found = set()
    for pid in host.listdir("/proc"):
        if pid.isdigit() and _uid(host, pid) == end.uid:
            found.add(_job(host, pid, end))
    return found - {"", end.job}


def left_processes(
    host: Host, end: JobEnd, gpus: Gpus | Missing, others: tuple[str, ...]
) -> tuple[LeftProcess, ...]:
    """The job's processes among those that NVML lists.

    A process without a job in its cgroup or environment may be the job's if its owner has no other
    job here; a process of root may not, since monitors run as root.
    """
    users: dict[int, dict[int, int | None]] = {}
    for gpu in () if isinstance(gpus, Missing) else gpus.gpus:
        for process in gpu.processes or ():
            users.setdefault(process.pid, {})[gpu.index] = process.used_bytes
    found = []
    for pid, used in sorted(users.items()):
        job = _job(host, str(pid), end)
        owned = end.uid and _uid(host, str(pid)) == end.uid and not others
        if job != end.job and (job or not owned):
            continue
        try:
            name, state, started = proc_stat.parse(host.read(f"/proc/{pid}/stat"))
        except (HostError, ValueError):
            continue  # it has ended since
        if state == "Z":
            continue
        sizes = [size for size in used.values() if size is not None]
        found.append(
            LeftProcess(
                pid=pid,
                started=started,
                name=name,
                gpus=tuple(sorted(used)),
                used_bytes=sum(sizes) if sizes else None,
                certain=job == end.job,
            )
        )
    return tuple(found)


def left_files(host: Host, end: JobEnd) -> dict[str, int]:
    """Files of the job's owner in /dev/shm that changed since the job began, with their sizes.

    The services of the node also run as root, so root's files count only if they have names that
    DeepSpeed, NCCL or torch use.
    """
    if end.uid is None:
        return {}
    try:
        names = host.listdir(SHM)
    except HostError:
        return {}
    found = {}
    for name in names:
        if end.uid == 0 and not is_job_segment(name):
            continue
        try:
            seen = host.stat(f"{SHM}/{name}")
        except HostError:
            continue
        if seen.kind == "file" and seen.uid == end.uid and seen.mtime >= (end.begun or 0.0):
            found[f"{SHM}/{name}"] = seen.size
    return found


def xids_since(log: KernelLog | Missing, seconds: float) -> tuple[XidEvent, ...] | None:
    """Xids of the last seconds; None if the log was not read or has no times."""
    if isinstance(log, Missing) or any(event.age_s is None for event in log.xids):
        return None
    return tuple(event for event in log.xids if (event.age_s or 0.0) <= seconds)


@probe
def job_remains(
    host: Host, end: JobEnd | Missing, gpus: Gpus | Missing, log: KernelLog | Missing
) -> JobRemains:
    """What the job left: processes on GPUs, files in /dev/shm, and Xids of its time."""
    if isinstance(end, Missing):
        raise HostError(Why.NOT_ASKED, "no job has just ended; `hook slurm-epilog` judges this")
    others = tuple(sorted({*end.others, *(other_jobs(host, end) if end.uid else ())}))
    return JobRemains(
        job=end.job,
        user=end.user,
        begun=end.begun,
        ecc=end.ecc,
        processes=left_processes(host, end, gpus, others),
        shm={} if others else left_files(host, end),
        others=others,
        xids=None if end.begun is None else xids_since(log, time.time() - end.begun),
    )
