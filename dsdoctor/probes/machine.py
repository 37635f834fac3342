"""Reads the operating system, and which of its resources a job may use."""

from __future__ import annotations

import contextlib
import posixpath
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from dsdoctor.api import OsInfo, Resources, probe
from dsdoctor.host import Host, HostError, exists, read_text

#: cgroup v1 writes "no limit" as a number near 2^63.
_NO_LIMIT = 1 << 60
#: Linux, drivers/gpu/drm/amd/amdkfd/kfd_topology.c
KFD = "/sys/class/kfd/kfd/topology/nodes"
#: enroot 3.1 to 4.0 src/runtime.sh: the lock of the container, mounted over itself read-only.
_ENROOT_LOCK = re.compile(r"^\d+ \d+ \S+ \S+ /\.lock \S*\bro\b", re.MULTILINE)
_CGROUP_CONTAINERS = re.compile(r"kubepods|docker|containerd|libpod|lxc|crio")


def parse_os_release(text: str) -> str | None:
    r"""`ID VERSION_ID` of /etc/os-release.

    >>> parse_os_release('NAME="Debian"\nID=debian\nVERSION_ID="12"\n')
    'debian 12'
    """
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    parts = [values.get(name, "").strip().strip("\"'") for name in ("ID", "VERSION_ID")]
    return " ".join(part for part in parts if part) or None


def parse_meminfo(text: str) -> dict[str, int]:
    r"""Fields of /proc/meminfo in bytes.

    >>> parse_meminfo("MemTotal:  2 kB\nHugePages_Total: 3\nrubbish\n")
    {'MemTotal': 2048, 'HugePages_Total': 3}
    """
    found = re.findall(r"^([\w()]+):\s*(\d+)( kB)?\s*$", text, re.MULTILINE)
    return {name: int(number) * (1024 if unit else 1) for name, number, unit in found}


class Cgroup(msgspec.Struct, frozen=True, kw_only=True):
    """A process's place in one cgroup hierarchy.

    Attributes:
        controllers: controllers of version 1; empty = version 2.
        path: path below the root of the hierarchy.
    """

    controllers: tuple[str, ...] = ()
    path: str = "/"


class CgroupMount(msgspec.Struct, frozen=True, kw_only=True):
    """Where a hierarchy can be seen.

    Attributes:
        controllers: controllers of version 1; empty = version 2.
        point: the folder.
        root: which part of the hierarchy that folder shows.
    """

    controllers: tuple[str, ...] = ()
    point: str
    root: str = "/"


def parse_cgroups(text: str) -> list[Cgroup]:
    r"""Parses /proc/self/cgroup.

    >>> [(c.controllers, c.path) for c in parse_cgroups("3:cpu,cpuacct:/a\n0::/b:c\n")]
    [(('cpu', 'cpuacct'), '/a'), ((), '/b:c')]
    """
    found = []
    for line in text.splitlines():
        number, colon, rest = line.partition(":")
        names, second, path = rest.partition(":")
        if not (colon and second and path.startswith("/")) or (not names and number != "0"):
            continue
        controllers = tuple(name for name in names.split(",") if name)
        found.append(Cgroup(controllers=controllers, path=path))
    return found


def parse_cgroup_mounts(mountinfo: str) -> list[CgroupMount]:
    """Cgroup mounts in /proc/self/mountinfo.

    >>> line = "35 24 0:30 /docker/1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory"
    >>> [(m.controllers, m.point, m.root) for m in parse_cgroup_mounts(line)]
    [(('memory',), '/sys/fs/cgroup/memory', '/docker/1')]
    """
    found = []
    for line in mountinfo.splitlines():
        before, dash, after = line.partition(" - ")
        left, right = before.split(" "), after.split(" ")
        if not dash or len(left) < 5 or len(right) < 3:  # noqa: PLR2004  # fields of the format
            continue
        if right[0] == "cgroup2":
            found.append(CgroupMount(point=left[4], root=left[3]))
        elif right[0] == "cgroup":
            options = right[2].split(",")
            controllers = tuple(option for option in options if option not in {"rw", "ro"})
            found.append(CgroupMount(controllers=controllers, point=left[4], root=left[3]))
    return found


def folders_of(path: str, mount: CgroupMount) -> list[str]:
    """Folders of a cgroup and all above it, as far as the mount shows them.

    >>> folders_of("/a/b", CgroupMount(point="/cg"))
    ['/cg/a/b', '/cg/a', '/cg']
    >>> folders_of("/docker/1/x", CgroupMount(point="/cg", root="/docker/1"))
    ['/cg/x', '/cg']
    >>> folders_of("/elsewhere", CgroupMount(point="/cg", root="/docker/1"))
    ['/cg']
    """
    root = mount.root.rstrip("/")
    inside = path == root or path.startswith(root + "/")
    rest = path[len(root) :].strip("/") if inside and "/.." not in path else ""
    names = rest.split("/") if rest else []
    return [posixpath.join(mount.point, *names[:count]) for count in range(len(names), -1, -1)]


def parse_number(text: str) -> int | None:
    r"""A limit or a counter; None if there is no limit.

    >>> parse_number("max\n"), parse_number("42\n"), parse_number("9223372036854771712")
    (None, 42, None)
    """
    text = text.strip()
    if not re.fullmatch(r"\d+", text):
        return None
    return None if int(text) >= _NO_LIMIT else int(text)


def parse_cpu_max(text: str) -> float | None:
    """CPUs that `cpu.max` (`quota period`) allows; None if it allows all.

    >>> parse_cpu_max("150000 100000"), parse_cpu_max("max 100000"), parse_cpu_max("?")
    (1.5, None, None)
    """
    found = re.fullmatch(r"(\d+)(?:\s+(\d+))?", text.strip())
    if not found or int(found[2] or 1) == 0:
        return None
    return int(found[1]) / int(found[2] or 100_000)


def parse_stat(text: str, *names: str) -> int:
    r"""The first of these fields in `memory.stat`; 0 if it has none of them.

    >>> parse_stat("anon 5\ninactive_file 7\n", "total_inactive_file", "inactive_file")
    7
    """
    values = dict(re.findall(r"^(\w+) (\d+)$", text, re.MULTILINE))
    return next((int(values[name]) for name in names if name in values), 0)


class CgroupLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What cgroups allow.

    Attributes:
        memory: the smallest limit in bytes.
        available: room below the tightest limit, in bytes.
        cpus: the smallest quota, in CPUs.
        tasks: the limit on processes and threads that leaves the least room, and that room.
    """

    memory: int | None = None
    available: int | None = None
    cpus: float | None = None
    tasks: tuple[int, int] | None = None


def _text(host: Host, path: str) -> str | None:
    try:
        return read_text(host, path)
    except HostError:
        return None


def _folders(host: Host, controller: str) -> Iterator[tuple[bool, str]]:
    """Folders that may limit a controller, each with whether it is of version 2."""
    cgroups = parse_cgroups(_text(host, "/proc/self/cgroup") or "")
    mounts = parse_cgroup_mounts(_text(host, "/proc/self/mountinfo") or "")
    if not mounts:
        base = "/sys/fs/cgroup"
        mounts = [
            CgroupMount(point=base),
            CgroupMount(controllers=("memory",), point=f"{base}/memory"),
            CgroupMount(controllers=("cpu",), point=f"{base}/cpu"),
            CgroupMount(controllers=("pids",), point=f"{base}/pids"),
        ]
    for cgroup in cgroups:
        for mount in mounts:
            if bool(cgroup.controllers) != bool(mount.controllers):
                continue
            if cgroup.controllers and not (
                controller in cgroup.controllers and controller in mount.controllers
            ):
                continue
            for folder in folders_of(cgroup.path, mount):
                yield not cgroup.controllers, folder


def _least(values: Iterable[int | float | None]) -> Any:
    return min((value for value in values if value is not None), default=None)


def read_cgroups(host: Host) -> CgroupLimits:
    """The tightest limits on the path from this process's cgroup to the root."""
    limits: list[int] = []
    available: list[int] = []
    for second, folder in _folders(host, "memory"):
        limit_file = "memory.max" if second else "memory.limit_in_bytes"
        usage_file = "memory.current" if second else "memory.usage_in_bytes"
        limit = parse_number(_text(host, f"{folder}/{limit_file}") or "")
        if limit is None:
            continue
        limits.append(limit)
        usage = parse_number(_text(host, f"{folder}/{usage_file}") or "")
        if usage is not None:
            stat = _text(host, f"{folder}/memory.stat") or ""
            # unused file cache is released when memory is requested
            cache = parse_stat(stat, "total_inactive_file", "inactive_file")
            available.append(min(limit, max(0, limit - usage + cache)))
    cpus: list[float | None] = []
    for second, folder in _folders(host, "cpu"):
        if second:
            cpus.append(parse_cpu_max(_text(host, f"{folder}/cpu.max") or ""))
        else:
            quota = (_text(host, f"{folder}/cpu.cfs_quota_us") or "").strip()
            period = (_text(host, f"{folder}/cpu.cfs_period_us") or "100000").strip()
            cpus.append(parse_cpu_max(f"{quota} {period}"))
    return CgroupLimits(
        memory=_least(limits),
        available=_least(available),
        cpus=_least(cpus),
        tasks=_tasks(host),
    )


def _tasks(host: Host) -> tuple[int, int] | None:
    """The tightest `pids.max`, and how many processes and threads it still allows."""
    found: list[tuple[int, int]] = []
    for _, folder in _folders(host, "pids"):  # the files of both versions have the same names
        limit = parse_number(_text(host, f"{folder}/pids.max") or "")
        used = parse_number(_text(host, f"{folder}/pids.current") or "")
        if limit is not None and used is not None:
            found.append((limit, max(0, limit - used)))
    return min(found, key=lambda one: one[1], default=None)


def _query(host: Host, name: str, default: Any = None) -> Any:
    try:
        return host.query(name)
    except HostError:
        return default


def container_of(host: Host) -> str | None:
    """The kind of container; None outside a container."""
    env = host.env
    if env.get("KUBERNETES_SERVICE_HOST") or exists(host, "/run/secrets/kubernetes.io"):
        return "kubernetes"
    if env.get("APPTAINER_CONTAINER") or env.get("SINGULARITY_CONTAINER"):
        return "apptainer"
    if _ENROOT_LOCK.search(_text(host, "/proc/self/mountinfo") or ""):
        return "enroot"
    marks = {
        "/.singularity.d": "apptainer",
        "/run/.containerenv": "podman",
        "/.dockerenv": "docker",
    }
    for path, name in marks.items():
        if exists(host, path):
            return name
    found = _CGROUP_CONTAINERS.search(_text(host, "/proc/1/cgroup") or "")
    if found:
        return {"kubepods": "kubernetes", "docker": "docker", "libpod": "podman"}.get(
            found[0], "container"
        )
    if env.get("container") or exists(host, "/run/systemd/container"):
        return "container"
    return None


def _amd_gpus(host: Host) -> int:
    """Nodes of the kernel's compute topology that are GPUs: a CPU's `gpu_id` is 0."""
    try:
        paths = host.glob(f"{KFD}/*/gpu_id")
    except HostError:  # a recording from before this was read
        return 0
    return sum((_text(host, path) or "0").strip() != "0" for path in paths)


def _writable(host: Host, path: str) -> bool | None:
    """Whether dsdoctor's account may write to a path; None if it does not exist."""
    try:
        return host.stat(path).writable
    except HostError:
        return None


@probe
def os_info(host: Host) -> OsInfo:
    """The operating system, whether it is a container or WSL, and GPUs of another vendor."""
    release = str(host.query("release"))
    linux = host.system == "Linux"
    return OsInfo(
        system=host.system,
        release=release,
        machine=str(_query(host, "machine", "")),
        hostname=str(_query(host, "hostname", "")),
        distribution=parse_os_release(_text(host, "/etc/os-release") or "") if linux else None,
        libc=_query(host, "libc") if linux else None,
        wsl=linux and "microsoft" in release.lower(),
        container=container_of(host) if linux else None,
        is_root=_query(host, "euid", -1) == 0,
        amd_gpus=_amd_gpus(host) if linux else 0,
        kfd_writable=_writable(host, "/dev/kfd") if linux else None,
        clock=date_in_the_past(_query(host, "clock")),
    )


#: No clock that is right shows an earlier time: 2026-11-01, before this was written.
_MADE = 1793491200


def date_in_the_past(now: object) -> str | None:
    """The date of a clock that is before this dsdoctor was made; None for any other, or no number.

    >>> date_in_the_past(761.0), date_in_the_past(1800000000.0), date_in_the_past(-1e300)
    ('1970-01-01', None, '1970-01-01')
    """
    if not isinstance(now, (int, float)) or not now < _MADE:
        return None
    return time.strftime("%Y-%m-%d", time.gmtime(max(0, now)))


def _memory(host: Host) -> tuple[int, int, int]:
    """Total, available and swap, in bytes."""
    if host.system == "Linux":
        with contextlib.suppress(HostError):
            values = parse_meminfo(read_text(host, "/proc/meminfo"))
            if "MemTotal" in values:
                free = values.get("MemFree", 0) + values.get("Cached", 0)
                available = values.get("MemAvailable", free)
                return values["MemTotal"], available, values.get("SwapTotal", 0)
    values = dict(host.query("memory"))
    return values["total"], values["available"], values.get("swap", 0)


@probe
def resources(host: Host) -> Resources:
    """CPUs, memory, shared memory and limits that a job would get."""
    cpus = int(host.query("cpu_count"))
    usable = int(_query(host, "affinity", cpus))
    total, available, swap = _memory(host)
    cgroups = read_cgroups(host) if host.system == "Linux" else CgroupLimits()
    if cgroups.cpus is not None:
        usable = min(usable, int(cgroups.cpus))
    if cgroups.available is not None:
        available = min(available, cgroups.available)
    limit = cgroups.memory
    if limit is not None and limit >= total:
        limit = None
    shm_total = shm_free = None
    if host.system == "Linux" and exists(host, "/dev/shm"):  # noqa: S108  # it is only measured
        with contextlib.suppress(HostError):
            usage = host.disk("/dev/shm")  # noqa: S108
            shm_total, shm_free = usage.total, usage.free
    limits: Mapping[str, int | None] = _query(host, "limits", {})
    return Resources(
        cpus_logical=cpus,
        cpus_usable=max(1, usable),
        memory_total_bytes=total,
        memory_available_bytes=min(available, total),
        memory_limit_bytes=limit,
        swap_total_bytes=swap,
        shm_total_bytes=shm_total,
        shm_free_bytes=shm_free,
        limit_memlock=limits.get("memlock"),
        limit_nofile=limits.get("nofile"),
        limit_stack=limits.get("stack"),
        limit_address_space=limits.get("address_space"),
        limit_nproc=limits.get("nproc"),
        tasks_limit=cgroups.tasks[0] if cgroups.tasks else None,
        tasks_left=cgroups.tasks[1] if cgroups.tasks else None,
    )
