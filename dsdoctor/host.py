"""The only door to the machine: Host, and the live, recording and replaying hosts.

Everything a probe may do stands in the `Host` protocol. Paths on network mounts are read by a
worker process that can be abandoned, because a dead NFS server blocks whoever touches it.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import glob as globbing
import json
import os
import platform
import shutil
import socket
import stat as stat_module
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from dsdoctor import process
from dsdoctor.model.facts.base import Missing, Why

T = TypeVar("T")

#: Files larger than this are cut off; nothing a probe reads is meant to be larger.
READ_LIMIT = 4 << 20
#: What a touch of a network mount may take before it counts as hung.
REMOTE_SECONDS = 5.0
#: What a tool (`nvidia-smi`, `nvcc`, …) may take (design §7).
TOOL_SECONDS = 10.0

NETWORK_FILE_SYSTEMS = frozenset(
    {
        "9p",
        "afs",
        "autofs",
        "beegfs",
        "ceph",
        "cifs",
        "fuse.sshfs",
        "gpfs",
        "lustre",
        "nfs",
        "nfs4",
        "smb3",
        "smbfs",
        "wekafs",
    },
)


class HostError(Exception):
    """Something could not be read; becomes a Missing with this reason.

    Attributes:
        missing: why, in the words of the report.
    """

    def __init__(self, why: Why, detail: str) -> None:
        super().__init__(detail)
        self.missing = Missing(why=why, detail=detail)


class Stat(msgspec.Struct, frozen=True, kw_only=True):
    """What a probe may know of a path (links followed).

    Attributes:
        kind: `file`, `dir`, `socket`, `device` or `other`.
        size: bytes.
        mtime: seconds since the epoch.
        mode: permission bits.
        uid: owner.
        writable: the doctor's user may write there.
    """

    kind: str
    size: int = 0
    mtime: float = 0.0
    mode: int = 0o644
    uid: int = 0
    writable: bool = True


class DiskUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The file system that holds a path.

    Attributes:
        total: bytes.
        free: bytes that this user may still take.
        inodes_total: how many files it can hold; None where it does not count them (btrfs, NTFS).
        inodes_free: how many more.
        read_only: it is mounted so.
    """

    total: int
    free: int
    inodes_total: int | None = None
    inodes_free: int | None = None
    read_only: bool = False


class Host(Protocol):
    """What probes may ask of a machine. Every method raises HostError when it cannot answer."""

    @property
    def system(self) -> str:
        """`Linux`, `Darwin` or `Windows`."""
        ...

    @property
    def env(self) -> Mapping[str, str]:
        """The environment that a job would inherit."""
        ...

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float = TOOL_SECONDS,
        idle_timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bytes | None = None,
    ) -> process.Result:
        """Runs a command in a process group of its own. A missing program is a HostError ABSENT.

        `env` is added to (or, with an empty value, taken from) the host's. A time-out is not an
        error but `Result.timed_out`.
        """
        ...

    def read(self, path: str) -> bytes:
        """The file's content, at most READ_LIMIT bytes."""
        ...

    def readlink(self, path: str) -> str:
        """The real path, all links followed."""
        ...

    def listdir(self, path: str) -> list[str]:
        """Sorted names in a folder."""
        ...

    def glob(self, pattern: str) -> list[str]:
        """Sorted paths that match; an empty list where nothing does."""
        ...

    def stat(self, path: str) -> Stat:
        """What is at a path."""
        ...

    def disk(self, path: str) -> DiskUsage:
        """Space on the file system of the nearest existing parent of a path."""
        ...

    def which(self, name: str, path: str | None = None) -> str | None:
        """Where a command is on PATH (or on the PATH given), None when it is not."""
        ...

    def query(self, name: str) -> Any:
        """Platform values by name: see `QUERIES` in this module."""
        ...

    def connect(self, host: str, port: int, timeout: float) -> str | None:
        """Tries a TCP connection: None when it worked, else the reason."""
        ...


def exists(host: Host, path: str) -> bool:
    """Whether a path is there; what cannot be told counts as not there."""
    try:
        host.stat(path)
    except HostError:
        return False
    return True


def read_text(host: Host, path: str) -> str:
    """A file as text; bytes that are not UTF-8 are replaced."""
    return host.read(path).decode("utf-8", "replace")


def _limits() -> dict[str, int | None]:
    try:
        import resource  # noqa: PLC0415  # not on Windows
    except ImportError:
        return {}
    wanted = {
        "memlock": "RLIMIT_MEMLOCK",
        "nofile": "RLIMIT_NOFILE",
        "stack": "RLIMIT_STACK",
        "address_space": "RLIMIT_AS",
    }
    found: dict[str, int | None] = {}
    for name, constant in wanted.items():
        number = getattr(resource, constant, None)
        if number is None:
            continue
        soft = resource.getrlimit(number)[0]
        found[name] = None if soft == resource.RLIM_INFINITY else soft
    return found


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory() -> dict[str, int]:
    import psutil  # noqa: PLC0415  # costs 15 ms that --version need not pay

    memory = psutil.virtual_memory()
    return {
        "total": int(memory.total),
        "available": int(memory.available),
        "swap": int(psutil.swap_memory().total),
    }


def _processes() -> list[dict[str, Any]]:
    """What every process that may be read is and does: pid, name, argv, cwd, locks it holds open.

    `locks` are the open files called `lock`: torch keeps that of a build open until it has ended.
    """
    import psutil  # noqa: PLC0415

    rows: list[dict[str, Any]] = []
    for entry in psutil.process_iter(["pid", "name", "cmdline", "cwd"]):
        info = entry.info
        rows.append(
            {
                "pid": info["pid"],
                "name": info["name"] or "",
                "argv": list(info["cmdline"] or ()),
                "cwd": info["cwd"] or "",
                "locks": _open_locks(info["pid"]),
            },
        )
    return rows


def _open_locks(pid: int) -> list[str]:
    found: list[str] = []
    folder = f"/proc/{pid}/fd"
    with contextlib.suppress(OSError):  # of another user, gone, or not Linux
        for name in os.listdir(folder):  # noqa: PTH208  # many: no objects for them
            with contextlib.suppress(OSError):
                target = os.readlink(f"{folder}/{name}")  # noqa: PTH115
                if target.endswith("/lock"):
                    found.append(target)
    return found


def _addresses() -> dict[str, list[str]]:
    """IP addresses of every interface that has some."""
    import psutil  # noqa: PLC0415

    wanted = (socket.AF_INET, socket.AF_INET6)
    return {
        name: [row.address for row in rows if row.family in wanted]
        for name, rows in psutil.net_if_addrs().items()
    }


def _cwd() -> str:
    """The working folder.

    Raises:
        HostError: it has been removed.
    """
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        words = "the working folder has been removed; change to one that is there"
        raise HostError(Why.ABSENT, words) from None


QUERIES: dict[str, Callable[[], Any]] = {
    "addresses": _addresses,
    "release": platform.release,
    "machine": platform.machine,
    "hostname": lambda: socket.gethostname().split(".")[0],
    "libc": lambda: " ".join(platform.libc_ver()).strip() or None,
    "cpu_count": lambda: os.cpu_count() or 1,
    "affinity": _affinity,
    "memory": _memory,
    "limits": _limits,
    "euid": lambda: os.geteuid() if hasattr(os, "geteuid") else -1,
    "home": lambda: os.path.expanduser("~"),  # noqa: PTH111  # Path.home() raises without a HOME
    "cwd": _cwd,
    "executable": lambda: sys.executable,
    "prefix": lambda: sys.prefix,
    "processes": _processes,
}


def as_host_error(error: OSError, what: str) -> HostError:
    """The HostError that an OSError stands for."""
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENXIO, errno.ENODEV):
        return HostError(Why.ABSENT, f"`{what}` does not exist")
    if error.errno in (errno.EACCES, errno.EPERM):
        return HostError(Why.DENIED, f"`{what}` may not be read by this user")
    if error.errno in (errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTDOWN):
        return HostError(Why.TIMEOUT, f"`{what}` is on a file system that does not answer")
    return HostError(Why.BROKEN, f"`{what}` could not be read ({error.strerror or error})")


def _stat_of(path: str) -> Stat:
    info = os.stat(path)  # noqa: PTH116  # str paths throughout: a replayed host may be of another OS
    mode = info.st_mode
    if stat_module.S_ISREG(mode):
        kind = "file"
    elif stat_module.S_ISDIR(mode):
        kind = "dir"
    elif stat_module.S_ISSOCK(mode):
        kind = "socket"
    elif stat_module.S_ISCHR(mode) or stat_module.S_ISBLK(mode):
        kind = "device"
    else:
        kind = "other"
    return Stat(
        kind=kind,
        size=info.st_size,
        mtime=info.st_mtime,
        mode=stat_module.S_IMODE(mode),
        uid=info.st_uid,
        writable=os.access(path, os.W_OK),
    )


def _disk_of(path: str) -> DiskUsage:
    place = Path(path)
    while not place.exists() and place != place.parent:
        place = place.parent
    usage = shutil.disk_usage(place)
    if not hasattr(os, "statvfs"):
        return DiskUsage(total=usage.total, free=usage.free)
    volume = os.statvfs(place)
    counted = volume.f_files > 0
    return DiskUsage(
        total=usage.total,
        free=usage.free,
        inodes_total=volume.f_files if counted else None,
        inodes_free=volume.f_favail if counted else None,
        read_only=bool(volume.f_flag & os.ST_RDONLY),
    )


def _real_path(path: str) -> str:
    return os.path.realpath(path)


def _read_of(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read(READ_LIMIT)


#: One-shot program for a path on a network mount; prints one JSON value, or an errno.
_REMOTE = """
import base64, glob, json, os, shutil, stat, sys
op, path, limit = sys.argv[1], sys.argv[2], int(sys.argv[3])
try:
    if op == "read":
        with open(path, "rb") as f: out = base64.b64encode(f.read(limit)).decode()
    elif op == "listdir": out = sorted(os.listdir(path))
    elif op == "glob": out = sorted(glob.glob(path))
    elif op == "readlink": out = os.path.realpath(path)
    elif op == "stat":
        s = os.stat(path); m = s.st_mode
        k = ("file" if stat.S_ISREG(m) else "dir" if stat.S_ISDIR(m) else "socket"
             if stat.S_ISSOCK(m) else "device" if stat.S_ISCHR(m) or stat.S_ISBLK(m) else "other")
        out = dict(kind=k, size=s.st_size, mtime=s.st_mtime, mode=stat.S_IMODE(m), uid=s.st_uid,
                   writable=os.access(path, os.W_OK))
    elif op == "disk":
        while not os.path.exists(path) and path != os.path.dirname(path):
            path = os.path.dirname(path)
        u = shutil.disk_usage(path); v = os.statvfs(path)
        out = dict(total=u.total, free=u.free, inodes_total=v.f_files or None,
                   inodes_free=v.f_favail if v.f_files else None,
                   read_only=bool(v.f_flag & os.ST_RDONLY))
    print(json.dumps({"ok": out}))
except OSError as e:
    print(json.dumps({"errno": e.errno, "text": e.strerror or str(e)}))
"""


def free_port() -> int:
    """A TCP port of this machine that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


class LocalHost:
    """The machine that dsdoctor runs on.

    Attributes:
        scale: factor on every time limit (`--timeout` scales them).
    """

    def __init__(self, env: Mapping[str, str] | None = None, *, scale: float = 1.0) -> None:
        self._env = dict(os.environ if env is None else env)
        self.scale = scale
        self._mounts: list[tuple[str, str]] | None = None
        self._mounts_lock = threading.Lock()

    @property
    def system(self) -> str:
        """See Host."""
        return platform.system()

    @property
    def env(self) -> Mapping[str, str]:
        """See Host."""
        return self._env

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float = TOOL_SECONDS,
        idle_timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bytes | None = None,
    ) -> process.Result:
        """See Host."""
        merged = dict(self._env)
        for name, value in (env or {}).items():
            if value:
                merged[name] = value
            else:
                merged.pop(name, None)
        try:
            return process.run(
                argv,
                timeout=timeout * self.scale,
                idle_timeout=None if idle_timeout is None else idle_timeout * self.scale,
                env=merged,
                cwd=cwd,
                stdin=stdin,
            )
        except OSError as error:
            raise as_host_error(error, argv[0]) from error

    def _network_mounts(self) -> list[tuple[str, str]]:
        with self._mounts_lock:
            if self._mounts is None:
                self._mounts = []
                with contextlib.suppress(OSError):
                    text = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
                    for line in text.splitlines():
                        fields = line.split(" ")
                        if len(fields) > 2 and fields[2] in NETWORK_FILE_SYSTEMS:  # noqa: PLR2004
                            self._mounts.append((fields[1].replace("\\040", " "), fields[2]))
            return self._mounts

    def file_system(self, path: str) -> str | None:
        """Type of the network file system that a path leads to, None when it is local.

        Links are followed by hand and only on local ground, so that this cannot hang.
        """
        mounts = self._network_mounts()
        if not mounts:
            return None
        pending = list(Path(os.path.abspath(path)).parts[1:])  # noqa: PTH100
        here, hops = os.sep, 0
        while pending:
            here = os.path.join(here, pending.pop(0))  # noqa: PTH118
            for mount, kind in mounts:
                if here == mount:
                    return kind
            if any(character in here for character in "*?["):
                break
            with contextlib.suppress(OSError):
                target = os.readlink(here)  # noqa: PTH115
                hops += 1
                if hops > 40:  # noqa: PLR2004  # the kernel's own bound on links
                    return None
                joined = os.path.abspath(os.path.join(os.path.dirname(here), target))  # noqa: PTH100, PTH118, PTH120
                pending = [*Path(joined).parts[1:], *pending]
                here = os.sep
        return None

    def _touch(self, op: str, path: str, local: Callable[[str], T], kind: Callable[[Any], T]) -> T:
        remote = self.file_system(path)
        if remote is None:
            try:
                return local(path)
            except OSError as error:
                raise as_host_error(error, path) from error
        result = self.run(
            [sys.executable, "-I", "-S", "-c", _REMOTE, op, path, str(READ_LIMIT)],
            timeout=REMOTE_SECONDS,
        )
        if result.timed_out:
            raise HostError(
                Why.TIMEOUT,
                f"`{path}` is on a {remote} mount that did not answer within {REMOTE_SECONDS:g} s",
            )
        try:
            answer = json.loads(result.stdout)
        except ValueError:
            raise HostError(Why.BROKEN, f"`{path}` could not be read") from None
        if "ok" not in answer:
            raise as_host_error(OSError(answer["errno"], answer["text"]), path)
        return kind(answer["ok"])

    def read(self, path: str) -> bytes:
        """See Host."""
        return self._touch("read", path, _read_of, base64.b64decode)

    def readlink(self, path: str) -> str:
        """See Host."""
        return self._touch("readlink", path, _real_path, str)

    def listdir(self, path: str) -> list[str]:
        """See Host."""
        return self._touch("listdir", path, lambda place: sorted(os.listdir(place)), list)  # noqa: PTH208

    def glob(self, pattern: str) -> list[str]:
        """See Host."""
        return self._touch("glob", pattern, lambda text: sorted(globbing.glob(text)), list)  # noqa: PTH207

    def stat(self, path: str) -> Stat:
        """See Host."""
        return self._touch("stat", path, _stat_of, lambda value: msgspec.convert(value, Stat))

    def disk(self, path: str) -> DiskUsage:
        """See Host."""
        return self._touch("disk", path, _disk_of, lambda value: msgspec.convert(value, DiskUsage))

    def which(self, name: str, path: str | None = None) -> str | None:
        """See Host."""
        where = self._env.get("PATH", "") if path is None else path
        folders = [place for place in where.split(os.pathsep) if place]
        local = [place for place in folders if self.file_system(place) is None]
        if len(local) == len(folders):
            return shutil.which(name, path=where)
        for place in folders:
            candidate = os.path.join(place, name)  # noqa: PTH118
            try:
                found = self.stat(candidate)
            except HostError:
                continue
            if found.kind == "file" and found.mode & 0o111:
                return candidate
        return None

    def query(self, name: str) -> Any:
        """See Host."""
        try:
            return QUERIES[name]()
        except OSError as error:
            raise as_host_error(error, name) from error

    def connect(self, host: str, port: int, timeout: float) -> str | None:
        """See Host."""
        try:
            with socket.create_connection((host, port), timeout=timeout * self.scale):
                return None
        except OSError as error:
            return error.strerror or str(error)


def _jsonable(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    return msgspec.to_builtins(value)


class RecordingHost:
    """Wraps a host and keeps every question with its answer, for a ReplayHost.

    Attributes:
        log: question (a JSON text) to answer.
    """

    def __init__(self, inner: Host) -> None:
        self._inner = inner
        self.log: dict[str, Any] = {}

    @property
    def system(self) -> str:
        """See Host."""
        return self._inner.system

    @property
    def env(self) -> Mapping[str, str]:
        """See Host."""
        return self._inner.env

    def _ask(self, name: str, call: Callable[[], T], *key: Any) -> T:
        question = json.dumps([name, *key])
        try:
            answer = call()
        except HostError as error:
            self.log[question] = {"missing": msgspec.to_builtins(error.missing)}
            raise
        self.log[question] = {"ok": _jsonable(answer)}
        return answer

    def run(  # noqa: D102
        self,
        argv: Sequence[str],
        *,
        timeout: float = TOOL_SECONDS,
        idle_timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bytes | None = None,
    ) -> process.Result:
        return self._ask(
            "run",
            lambda: self._inner.run(
                argv, timeout=timeout, idle_timeout=idle_timeout, env=env, cwd=cwd, stdin=stdin
            ),
            list(argv),
        )

    def read(self, path: str) -> bytes:  # noqa: D102
        return self._ask("read", lambda: self._inner.read(path), path)

    def readlink(self, path: str) -> str:  # noqa: D102
        return self._ask("readlink", lambda: self._inner.readlink(path), path)

    def listdir(self, path: str) -> list[str]:  # noqa: D102
        return self._ask("listdir", lambda: self._inner.listdir(path), path)

    def glob(self, pattern: str) -> list[str]:  # noqa: D102
        return self._ask("glob", lambda: self._inner.glob(pattern), pattern)

    def stat(self, path: str) -> Stat:  # noqa: D102
        return self._ask("stat", lambda: self._inner.stat(path), path)

    def disk(self, path: str) -> DiskUsage:  # noqa: D102
        return self._ask("disk", lambda: self._inner.disk(path), path)

    def which(self, name: str, path: str | None = None) -> str | None:  # noqa: D102
        return self._ask("which", lambda: self._inner.which(name, path), name, path)

    def query(self, name: str) -> Any:  # noqa: D102
        return self._ask("query", lambda: self._inner.query(name), name)

    def connect(self, host: str, port: int, timeout: float) -> str | None:  # noqa: D102
        return self._ask("connect", lambda: self._inner.connect(host, port, timeout), host, port)

    def dump(self) -> dict[str, Any]:
        """The recording, ready for JSON."""
        return {"system": self.system, "env": dict(self.env), "answers": self.log}


class ReplayHost:
    """A machine from a recording. What was not recorded is absent."""

    def __init__(self, recording: Mapping[str, Any]) -> None:
        self._system = str(recording["system"])
        self._env: dict[str, str] = dict(recording["env"])
        self._answers: Mapping[str, Any] = recording["answers"]

    @property
    def system(self) -> str:
        """See Host."""
        return self._system

    @property
    def env(self) -> Mapping[str, str]:
        """See Host."""
        return self._env

    def _tell(self, name: str, *key: Any) -> Any:
        answer = self._answers.get(json.dumps([name, *key]))
        if answer is None:
            raise HostError(Why.ABSENT, f"`{key[0]}` is not in the recording")
        if "missing" in answer:
            missing = msgspec.convert(answer["missing"], Missing)
            raise HostError(missing.why, missing.detail)
        value = answer["ok"]
        if isinstance(value, dict) and set(value) == {"base64"}:
            return base64.b64decode(value["base64"])
        return value

    def run(  # noqa: D102
        self,
        argv: Sequence[str],
        *,
        timeout: float = TOOL_SECONDS,  # noqa: ARG002
        idle_timeout: float | None = None,  # noqa: ARG002
        env: Mapping[str, str] | None = None,  # noqa: ARG002
        cwd: str | None = None,  # noqa: ARG002
        stdin: bytes | None = None,  # noqa: ARG002
    ) -> process.Result:
        return msgspec.convert(self._tell("run", list(argv)), process.Result)

    def read(self, path: str) -> bytes:  # noqa: D102
        return bytes(self._tell("read", path))

    def readlink(self, path: str) -> str:  # noqa: D102
        return str(self._tell("readlink", path))

    def listdir(self, path: str) -> list[str]:  # noqa: D102
        return list(self._tell("listdir", path))

    def glob(self, pattern: str) -> list[str]:  # noqa: D102
        try:
            return list(self._tell("glob", pattern))
        except HostError as error:
            if error.missing.why is Why.ABSENT:
                return []
            raise

    def stat(self, path: str) -> Stat:  # noqa: D102
        return msgspec.convert(self._tell("stat", path), Stat)

    def disk(self, path: str) -> DiskUsage:  # noqa: D102
        return msgspec.convert(self._tell("disk", path), DiskUsage)

    def which(self, name: str, path: str | None = None) -> str | None:  # noqa: D102
        try:
            found = self._tell("which", name, path)
        except HostError:
            return None
        return None if found is None else str(found)

    def query(self, name: str) -> Any:  # noqa: D102
        return self._tell("query", name)

    def connect(self, host: str, port: int, timeout: float) -> str | None:  # noqa: ARG002, D102
        answer = self._tell("connect", host, port)
        return None if answer is None else str(answer)
