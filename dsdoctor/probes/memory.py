"""Reads host memory that is not used by processes: huge pages, swap, stale /dev/shm segments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from dsdoctor.api import Missing, OsInfo, probe
from dsdoctor.host import Host, HostError, read_text
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.memory import MemoryDetail
from dsdoctor.probes.machine import parse_cgroup_mounts, parse_meminfo

SHM = "/dev/shm"  # noqa: S108  # it is only looked at
#: Names that DeepSpeed, NCCL, torch and Python's multiprocessing give their segments
#: (deepspeed csrc/cpu/comm/shm.cpp, nccl src/misc/shmutils.cc, torch.multiprocessing,
#: multiprocessing.shared_memory; 2026-11-22).
_OURS = re.compile(
    r"deepspeed_allreduce_buffer_|nccl-|torch_\d|psm_|pym-|__KMP|sem\.(?:mp|loky)-|cuda\.shm"
)
#: More segments than this are not examined one by one.
_MANY = 2000
#: A process with a smaller address space has not loaded torch, whose main library alone is larger
#: (libtorch_cpu.so of 2.13.0+cpu has 434 MB, 2026-11-22).
_TORCH_KB = 200 << 10
#: The source name of a /dev/shm that a container runtime created for one container.
_PRIVATE = "shm"


def is_job_segment(name: str) -> bool:
    """Whether a file in /dev/shm has the name of a segment that a training job creates.

    >>> is_job_segment("torch_77_1"), is_job_segment("PostgreSQL.1")
    (True, False)
    """
    return _OURS.match(name) is not None


def shared_with_others(mountinfo: str) -> bool:
    r"""Whether processes outside this container may have segments in its /dev/shm.

    >>> shared_with_others("9 8 0:9 / /dev/shm rw - tmpfs shm rw,size=65536k\n")
    False
    >>> shared_with_others("9 8 0:9 / /dev/shm rw - tmpfs tmpfs rw\n")  # --ipc=host
    True
    """
    for line in mountinfo.splitlines():
        fields, _, kind = line.partition(" - ")
        if fields.split()[4:5] == [SHM]:
            return kind.split()[1:2] != [_PRIVATE]
    return True


def _sees_all(host: Host) -> bool:
    """Whether this is the machine's own PID namespace: only that shows the kernel's threads."""
    try:
        return read_text(host, "/proc/2/comm").strip() == "kthreadd"
    except HostError:
        return False


class _Left(NamedTuple):
    """Content of /dev/shm: number of files, stale segments, those of this user, owners."""

    files: int
    segments: dict[str, int] = {}
    mine: tuple[str, ...] = ()
    owners: dict[str, int] = {}


def _read_shm(host: Host, visible: bool) -> _Left:
    try:
        names = host.listdir(SHM)
    except HostError:
        return _Left(0)
    ours = [name for name in names if _OURS.match(name)]
    if not ours or len(ours) > _MANY or not visible:
        return _Left(len(names))
    try:
        user = host.stat("/proc/self").uid
        used = mapped(host, user)
    except HostError:
        return _Left(len(names))
    left: dict[str, int] = {}
    mine: list[str] = []
    owners: dict[str, int] = {}
    for name in ours:
        path = f"{SHM}/{name}"
        try:
            found = host.stat(path)
        except HostError:
            continue  # it was removed in the meantime
        if path in used or found.kind != "file" or (user and found.uid != user):
            continue
        left[path] = found.size
        owners[str(found.uid)] = owners.get(str(found.uid), 0) + found.size
        if found.uid == user:
            mine.append(path)
    return _Left(len(names), left, tuple(mine), owners)


def mapped(host: Host, user: int) -> set[str]:
    """Segments that the processes of a user map; those of every user for root.

    Raises:
        HostError: one of these processes could not be read.
    """
    used: set[str] = set()
    for name in host.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            text = read_text(host, f"/proc/{name}/maps")
        except HostError as error:
            if error.missing.why is Why.ABSENT or _harmless(host, name, user):
                continue
            raise
        used.update(re.findall(rf"{SHM}/\S+", text))
    return used


def _harmless(host: Host, pid: str, user: int) -> bool:
    """Whether a process whose maps are denied cannot map a segment of the user."""
    try:
        if user and host.stat(f"/proc/{pid}").uid != user:
            return True  # segments are created with mode 0600
        status = read_text(host, f"/proc/{pid}/status")
    except HostError as error:
        return error.missing.why is Why.ABSENT
    if re.search(r"^RssShmem:\s+0 kB", status, re.MULTILINE):
        return True
    size = re.search(r"^VmSize:\s+(\d+) kB", status, re.MULTILINE)
    return size is not None and int(size[1]) < _TORCH_KB


def _detail(values: Mapping[str, int], mountinfo: str) -> MemoryDetail:
    """Huge pages and swap of /proc/meminfo, and the cgroup version."""
    page = values.get("Hugepagesize", 0)
    total = max(values.get("Hugetlb", 0), values.get("HugePages_Total", 0) * page)
    mounts = parse_cgroup_mounts(mountinfo)
    version = None
    if any("memory" in mount.controllers for mount in mounts):
        version = "v1"
    elif any(not mount.controllers for mount in mounts):
        version = "v2"
    return MemoryDetail(
        hugepages_bytes=total,
        hugepages_free_bytes=values.get("HugePages_Free", 0) * page,
        swap_total_bytes=values.get("SwapTotal", 0),
        swap_free_bytes=values.get("SwapFree", 0),
        cgroup=version,
    )


@probe
def memory_detail(host: Host, system: OsInfo | Missing) -> MemoryDetail:
    """The host memory that a job cannot use, and why."""
    if host.system != "Linux":
        raise HostError(Why.UNSUPPORTED, "huge pages, swap and /dev/shm are read only on Linux")
    try:
        mounts = read_text(host, "/proc/self/mountinfo")
    except HostError:
        mounts = ""
    values = parse_meminfo(read_text(host, "/proc/meminfo"))
    detail = _detail(values, mounts)
    inside = isinstance(system, OsInfo) and system.container is not None
    visible = not inside or _sees_all(host) or not shared_with_others(mounts)
    left = _read_shm(host, visible)
    return msgspec.structs.replace(
        detail,
        shm_files=left.files,
        shm_left=left.segments,
        shm_mine=left.mine,
        shm_owners=left.owners,
        **_commit(host, values),
    )


#: vm.overcommit_memory: never more than CommitLimit.
_STRICT = "2"


def _commit(host: Host, values: Mapping[str, int]) -> dict[str, int]:
    """What programs may reserve, in all and still; empty if the kernel does not count."""
    try:
        counted = read_text(host, "/proc/sys/vm/overcommit_memory").strip() == _STRICT
    except HostError:
        return {}
    if not counted or "CommitLimit" not in values or "Committed_AS" not in values:
        return {}
    limit = values["CommitLimit"]
    return {"commit_limit_bytes": limit, "commit_left_bytes": limit - values["Committed_AS"]}
