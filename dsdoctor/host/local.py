"""The machine that dsdoctor runs on.

Paths on network mounts are read by a worker process that can be abandoned, because a dead NFS
server blocks every process that accesses it.
"""

from __future__ import annotations

import base64
import contextlib
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
from typing import Any, TypeVar

import msgspec

from dsdoctor import process
from dsdoctor.host import account as accounts
from dsdoctor.host.door import (
    READ_LIMIT,
    TOOL_SECONDS,
    DiskUsage,
    HostError,
    Stat,
    as_host_error,
)
from dsdoctor.host.queries import QUERIES
from dsdoctor.model.facts.base import Why

T = TypeVar("T")

#: How long an access to a network mount may take before it counts as hung.
REMOTE_SECONDS = 5.0

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
    # a FIFO is not waited for
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as file:
        accounts.may_quote(path, os.fstat(handle))
        return file.read(READ_LIMIT)


#: One-shot program for a path on a network mount; prints one JSON value, or an errno.
#: As root it refuses what `account.may_quote` refuses: another account's link to a private file.
_REMOTE = """
import base64, errno, glob, json, os, shutil, stat, sys
op, path, limit = sys.argv[1], sys.argv[2], int(sys.argv[3])
def quotable(s):
    if os.geteuid() or s.st_mode & 0o004: return
    roots = (0, os.stat("/").st_uid)
    todo, here, owner, links, theirs = os.path.abspath(path).split("/")[::-1], "/", None, 0, False
    while todo and links < 40:
        name = todo.pop()
        at = os.path.join(here, name) if name != ".." else os.path.dirname(here)
        i = os.lstat(at)
        foreign = i.st_uid not in roots
        owner = i.st_uid if foreign and owner is None else owner
        if stat.S_ISLNK(i.st_mode):
            links, theirs, target = links + 1, theirs or foreign, os.readlink(at)
            todo += target.split("/")[::-1]
            at = "/" if target.startswith("/") else here
        here = at
    if theirs and owner != s.st_uid: raise OSError(errno.EPERM, "a link of another account")
try:
    if op == "read":
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as f:
            quotable(os.fstat(f.fileno()))
            out = base64.b64encode(f.read(limit)).decode()
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


#: The range in which a port to listen on is searched for, and the number of trials.
_PORTS, _PORT_TRIALS = (20_000, 32_000), 50
_DEALT = "/proc/sys/net/ipv4/ip_local_port_range"


def free_port(address: str = "") -> int:
    """A TCP port of this machine that no process listens on now.

    It is used seconds later, so it is below the ports that the kernel assigns to connections and to
    listeners without a port (`ip_local_port_range`), if possible.

    Args:
        address: address of the listener, "" for every address.
    """
    import random  # noqa: PLC0415  # for jobs of several nodes only

    first, last = _PORTS
    with contextlib.suppress(OSError, ValueError, IndexError):
        last = min(last, int(Path(_DEALT).read_text(encoding="ascii").split()[0]))
    for _ in range(_PORT_TRIALS if last > first else 0):
        with socket.socket() as probe, contextlib.suppress(OSError):
            port = random.randrange(first, last)  # noqa: S311  # no secret
            probe.bind((address, port))
            return port
    with socket.socket() as probe:
        probe.bind((address, 0))
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
        words = accounts.isolated(argv)
        account = accounts.choose(words, merged)
        try:
            return process.run(
                words if account is None else accounts.readable(words),
                timeout=timeout * self.scale,
                idle_timeout=None if idle_timeout is None else idle_timeout * self.scale,
                env=merged,
                cwd=accounts.working_folder(cwd, account),
                stdin=stdin,
                account=account,
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

        Links are followed one by one and only on local file systems, so that this cannot hang.
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
