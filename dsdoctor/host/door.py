"""The only door to the machine: what probes may ask, and what cannot be answered.

Everything a probe may do is in the `Host` protocol; `local`, `replay` and `fake` implement it.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from dsdoctor import process
from dsdoctor.model.facts.base import Missing, Why

#: Files larger than this are cut off; nothing a probe reads is meant to be larger.
READ_LIMIT = 4 << 20
#: What a tool (`nvidia-smi`, `nvcc`, …) may take, in seconds.
TOOL_SECONDS = 10.0


class HostError(Exception):
    """Something could not be read; becomes a Missing with this reason.

    Attributes:
        missing: the reason, as the report shows it.
    """

    def __init__(self, why: Why, detail: str) -> None:
        super().__init__(detail)
        self.missing = Missing(why=why, detail=detail)


class Stat(msgspec.Struct, frozen=True, kw_only=True):
    """What a probe may know about a path (links followed).

    Attributes:
        kind: `file`, `dir`, `socket`, `device` or `other`.
        size: bytes.
        mtime: seconds since the epoch.
        mode: permission bits.
        uid: owner.
        writable: dsdoctor's user may write there.
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
        free: bytes that this user may still use.
        inodes_total: how many files it can hold; None if it does not count them (btrfs, NTFS).
        inodes_free: how many more.
        read_only: it is mounted read-only.
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

        `env` is added to (or, with an empty value, taken from) the host's. A timeout is not an
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
        """Sorted paths that match; an empty list if none does."""
        ...

    def stat(self, path: str) -> Stat:
        """What is at a path."""
        ...

    def disk(self, path: str) -> DiskUsage:
        """Space on the file system of the nearest existing parent of a path."""
        ...

    def which(self, name: str, path: str | None = None) -> str | None:
        """Where a command is on PATH (or in the folders of `path`), None if it is not found."""
        ...

    def query(self, name: str) -> Any:
        """Platform values by name: see `QUERIES` in this module."""
        ...

    def connect(self, host: str, port: int, timeout: float) -> str | None:
        """Tries a TCP connection: None when it worked, else the reason."""
        ...


def exists(host: Host, path: str) -> bool:
    """Whether a path exists; one that cannot be read counts as absent."""
    try:
        host.stat(path)
    except HostError:
        return False
    return True


def read_text(host: Host, path: str) -> str:
    """A file as text; bytes that are not UTF-8 are replaced."""
    return host.read(path).decode("utf-8", "replace")


def home_folder(host: Host) -> str:
    """The home directory, as the shell's `~`: the variable, else the account's.

    Raises:
        HostError: neither is known.
    """
    return host.env.get("HOME") or str(host.query("home"))


def real_path(host: Host, path: str) -> str:
    """The real path, all links followed; the path itself if that cannot be determined."""
    try:
        return host.readlink(path)
    except HostError:
        return path


def matches(host: Host, pattern: str) -> list[str]:
    """Sorted paths that match; none if the folders cannot be read."""
    try:
        return host.glob(pattern)
    except HostError:
        return []


def as_host_error(error: OSError, what: str) -> HostError:
    """The HostError for an OSError."""
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENXIO, errno.ENODEV):
        return HostError(Why.ABSENT, f"`{what}` does not exist")
    if error.errno in (errno.EACCES, errno.EPERM):
        return HostError(Why.DENIED, f"`{what}` may not be read by this user")
    if error.errno in (errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTDOWN):
        return HostError(Why.TIMEOUT, f"`{what}` is on a file system that does not answer")
    return HostError(Why.BROKEN, f"`{what}` could not be read ({error.strerror or error})")
