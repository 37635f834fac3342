"""Reads what holds host memory beside processes: huge pages, swap, left-overs in /dev/shm."""

from __future__ import annotations

import re

from dsdoctor.api import probe
from dsdoctor.host import Host, HostError, read_text
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.memory import MemoryDetail
from dsdoctor.probes.machine import parse_cgroup_mounts, parse_meminfo

SHM = "/dev/shm"  # noqa: S108  # it is only looked at
#: Names that NCCL, torch and Python's multiprocessing give their segments.
_OURS = re.compile(r"nccl-|torch_\d|psm_|pym-|__KMP|sem\.(?:mp|loky)-|cuda\.shm")
#: More segments than this are not asked for one by one.
_MANY = 2000


def _left(host: Host) -> tuple[int, dict[str, int]]:
    """Files in /dev/shm, and the segments among them that no process maps."""
    try:
        names = host.listdir(SHM)
    except HostError:
        return 0, {}
    ours = [name for name in names if _OURS.match(name)]
    if not ours or len(ours) > _MANY:
        return len(names), {}
    used = _mapped(host)
    left: dict[str, int] = {}
    if used is None:
        return len(names), left
    for name in ours:
        path = f"{SHM}/{name}"
        if path not in used:
            try:
                left[path] = host.stat(path).size
            except HostError:
                continue  # it went away meanwhile
    return len(names), left


def _mapped(host: Host) -> set[str] | None:
    """Segments that some process maps; None where not every process may be looked into."""
    used: set[str] = set()
    try:
        names = host.listdir("/proc")
    except HostError:
        return None
    for name in names:
        if not name.isdigit():
            continue
        try:
            text = read_text(host, f"/proc/{name}/maps")
        except HostError as error:
            if error.missing.why is Why.ABSENT:
                continue  # it has ended
            return None
        used.update(re.findall(rf"{SHM}/\S+", text))
    return used


def parse_detail(meminfo: str, mountinfo: str) -> MemoryDetail:
    r"""Huge pages, swap and cgroup version.

    >>> parse_detail("HugePages_Total: 2\nHugePages_Free: 1\nHugepagesize: 2048 kB\n", ""
    ...     ).hugepages_free_bytes
    2097152
    """
    values = parse_meminfo(meminfo)
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
def memory_detail(host: Host) -> MemoryDetail:
    """What of the host's memory a job cannot have, and why."""
    if host.system != "Linux":
        raise HostError(Why.UNSUPPORTED, "huge pages, swap and /dev/shm are read on Linux alone")
    try:
        mounts = read_text(host, "/proc/self/mountinfo")
    except HostError:
        mounts = ""
    detail = parse_detail(read_text(host, "/proc/meminfo"), mounts)
    files, left = _left(host)
    return MemoryDetail(
        hugepages_bytes=detail.hugepages_bytes,
        hugepages_free_bytes=detail.hugepages_free_bytes,
        swap_total_bytes=detail.swap_total_bytes,
        swap_free_bytes=detail.swap_free_bytes,
        shm_files=files,
        shm_left=left,
        cgroup=detail.cgroup,
    )
