"""Whether root may trust a path: it is walked by descriptor, and each folder and link is judged.

Two levels for root:

- *strict* (hooks, fixes, state): every folder of the path belongs to root or the caller and cannot
  be written by others. This is the rule of OpenSSH's StrictModes. A sticky folder such as /tmp is
  allowed, because no other account can rename or remove root's files in it.
- otherwise (a file on the command line): folders may belong to others, but no link of another
  account is followed.

For every other account a link in a sticky folder is followed only if it is its own or belongs to
the folder's owner, which is what Linux does with `fs.protected_symlinks`.

Standard library only: the hooks that run before every job use it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

#: More links than this on one path are a loop (Linux's own limit).
_MAX_LINKS = 40
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
#: Kinds without content, so that write permission does not matter: a link, /dev/null, a socket.
_WITHOUT_CONTENT = (stat.S_IFLNK, stat.S_IFCHR, stat.S_IFSOCK)
POSIX = os.name == "posix"
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
#: O_PATH needs permission to enter a folder, not to list it.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)


class UnsafePathError(PermissionError):
    """Another account controls part of a path; `strerror` says which part and why."""

    def __init__(self, reason: str, path: str) -> None:
        super().__init__(errno.EPERM, reason, path)


def is_root() -> bool:
    """Whether this process runs as root."""
    return POSIX and os.geteuid() == 0


class Rules(NamedTuple):
    """Whose folders and links are accepted.

    Attributes:
        trusted: accounts that may own folders and links of the path.
        strict: folders are judged too, not only links.
        root: the rules for root; otherwise those of `fs.protected_symlinks`.
    """

    trusted: frozenset[int]
    strict: bool
    root: bool

    def may_enter(self, info: os.stat_result, path: str) -> None:
        """Judges a folder of the path.

        Raises:
            UnsafePathError: an account that is not trusted owns it or can write to it.
        """
        if self.strict and self.root:
            reason = unsafe(info, path, self.trusted)
            if reason:
                raise UnsafePathError(reason, path)

    def may_follow(self, info: os.stat_result, parent: os.stat_result, path: str) -> None:
        """Judges a link of the path.

        Raises:
            UnsafePathError: it belongs to another account.
        """
        if self.root:
            safe = info.st_uid in self.trusted
        else:
            shared = parent.st_mode & stat.S_ISVTX and parent.st_mode & stat.S_IWOTH
            safe = not shared or info.st_uid in (parent.st_uid, *self.trusted)
        if not safe:
            raise UnsafePathError(f"`{path}` is a link of {account(info.st_uid)}", path)


class PathRules(Protocol):
    """What `descend` and `locate` ask at each step of a path."""

    @property
    def strict(self) -> bool:
        """Whether a relative path is walked from `/`."""

    def may_enter(self, info: os.stat_result, path: str, /) -> None:
        """Judges a folder of the path."""

    def may_follow(self, info: os.stat_result, parent: os.stat_result, path: str, /) -> None:
        """Judges a link of the path."""


def account(uid: int) -> str:
    """An account for a message: its name, if it has one, and its number.

    >>> account(0)
    'root'
    """
    if uid == 0:
        return "root"
    with contextlib.suppress(ImportError, KeyError):
        import pwd  # noqa: PLC0415  # not on Windows

        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    return f"uid {uid}"


def unsafe(
    info: os.stat_result, path: str, trusted: frozenset[int], *, entries: bool = False
) -> str:
    """Why an account that is not trusted could change a file or folder; empty if none could.

    Args:
        info: of the file or folder.
        path: where it is.
        trusted: accounts that may own it.
        entries: it is a folder, and creating files in it counts, which a sticky one allows.
    """
    if info.st_uid not in trusted:
        return f"`{path}` belongs to {account(info.st_uid)}, not to root"
    kind = stat.S_IFMT(info.st_mode)
    sticky = kind == stat.S_IFDIR and info.st_mode & stat.S_ISVTX and not entries
    if info.st_mode & _OTHERS_WRITE and not sticky and kind not in _WITHOUT_CONTENT:
        return f"`{path}` can be written by others (mode {stat.S_IMODE(info.st_mode):o})"
    return ""


def trusted_accounts(more: tuple[int, ...] = ()) -> frozenset[int]:
    """Root, the caller, and the owner of `/` (in a user namespace the host's root is not uid 0).

    Args:
        more: accounts that an administrator has listed.
    """
    if not POSIX:
        return frozenset()
    return frozenset({0, os.geteuid(), Path("/").stat().st_uid, *more})


def rules_for(*, strict: bool) -> Rules:
    """The rules for this process."""
    return Rules(trusted_accounts(), strict, is_root())


# ---- walking -----------------------------------------------------------------------------------


class Folder(NamedTuple):
    """An open folder.

    Attributes:
        handle: its descriptor.
        path: where it is, without links.
    """

    handle: int
    path: str


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def descend(path: str, rules: PathRules, make: int | None) -> Folder:
    """Opens a folder, component by component; links are followed here, not by the kernel.

    Args:
        path: which.
        rules: whose components are accepted.
        make: permission bits of missing folders; None = they are not created.

    Raises:
        UnsafePathError: the rules do not accept a component.
        OSError: it cannot be opened.
    """
    if not path.startswith("/") and rules.strict:
        path = f"{os.getcwd()}/{path}"  # noqa: PTH109  # a deleted folder is an OSError here
    absolute = path.startswith("/")
    handle = os.open("/" if absolute else ".", _FOLDER)
    here = "/" if absolute else "."
    todo = list(reversed(_parts(path)))
    links = 0
    try:
        rules.may_enter(os.fstat(handle), here)
        while todo:
            name = todo.pop()
            target = None if name == ".." else _link_target(handle, name, here, rules)
            if target is None:
                fresh, here = _open_folder(handle, name, here, make)
            else:
                links += 1
                _bound(links, path)
                todo += reversed(_parts(target))
                if not target.startswith("/"):
                    continue
                fresh, here = os.open("/", _FOLDER), "/"
            os.close(handle)
            handle = fresh
            rules.may_enter(os.fstat(handle), here)
    except BaseException:
        os.close(handle)
        raise
    return Folder(handle, here)


def _bound(links: int, path: str) -> None:
    if links > _MAX_LINKS:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def _link_target(handle: int, name: str, here: str, rules: PathRules) -> str | None:
    """The target of a component that is a link, if the rules accept it; None = not a link."""
    try:
        info = os.stat(name, dir_fd=handle, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISLNK(info.st_mode):
        return None
    rules.may_follow(info, os.fstat(handle), f"{here.rstrip('/')}/{name}")
    return os.readlink(name, dir_fd=handle)


def _open_folder(handle: int, name: str, here: str, make: int | None) -> tuple[int, str]:
    if name == "..":
        return os.open("..", _FOLDER, dir_fd=handle), f"{here}/..".replace("//", "/")
    path = f"{here.rstrip('/')}/{name}"
    try:
        return os.open(name, _FOLDER | NOFOLLOW, dir_fd=handle), path
    except FileNotFoundError:
        if make is None:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, make, dir_fd=handle)
        return os.open(name, _FOLDER | NOFOLLOW, dir_fd=handle), path
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None


class Place(NamedTuple):
    """A name in an open folder, or a descriptor of ours that a path such as /dev/stdout means.

    Attributes:
        folder: the folder; its descriptor is the caller's to close.
        name: of the file in it.
        info: of what exists there now; None = nothing.
        own: descriptor of this process that the path refers to.
    """

    folder: Folder
    name: str
    info: os.stat_result | None
    own: int | None = None


@contextlib.contextmanager
def locate(
    path: str | Path, rules: PathRules, *, make: int | None = None, follow: bool = True
) -> Iterator[Place]:
    """The folder of a path, open, and the name in it.

    Args:
        path: which.
        rules: whose folders and links are accepted.
        make: permission bits of missing folders; None = they are not created.
        follow: a link at the end is followed; otherwise the path means the link itself.
    """
    text = os.fspath(path)
    for _ in range(_MAX_LINKS):
        parent, _, name = text.rstrip("/").rpartition("/")
        if name in ("", ".", ".."):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), text)
        if not parent and text.startswith("/"):
            parent = "/"
        folder = descend(parent, rules, make)
        try:
            try:
                info = os.stat(name, dir_fd=folder.handle, follow_symlinks=False)
            except FileNotFoundError:
                info = None
            if info is None or not stat.S_ISLNK(info.st_mode) or not follow:
                yield Place(folder, name, info)
                return
            own = _own_descriptor(folder.path, name)
            if own is not None:
                yield Place(folder, name, info, own)
                return
            rules.may_follow(info, os.fstat(folder.handle), f"{folder.path.rstrip('/')}/{name}")
            target = os.readlink(name, dir_fd=folder.handle)
            text = target if target.startswith("/") else f"{folder.path}/{target}"
        finally:
            os.close(folder.handle)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))


def _own_descriptor(folder: str, name: str) -> int | None:
    """A descriptor of this process, if the path is its entry in /proc or /dev."""
    mine = ("/dev/fd", f"/proc/{os.getpid()}/fd", "/proc/self/fd")
    return int(name) if folder in mine and name.isdecimal() else None


def why_untrusted(
    path: str | Path,
    trusted: frozenset[int] | None = None,
    *,
    entries: bool = False,
    absent: bool = False,
) -> str:
    """Why root must not run or trust a file or folder; empty if it may.

    As with OpenSSH's StrictModes, the path itself, the targets of its links, and every folder
    above each of them are judged. Modes are judged nowhere else: code that needs to know whether
    another account could have changed something calls this function.

    Args:
        path: which.
        trusted: accounts that may own it; None = root, the caller, the owner of `/`.
        entries: it is a folder, and creating files in it counts too.
        absent: it need not exist; if it does not, only root may be able to create it.
    """
    if not POSIX:
        return ""
    rules = Rules(trusted_accounts() if trusted is None else trusted, strict=True, root=True)
    try:
        try:
            with locate(path, rules) as place:
                full = f"{place.folder.path.rstrip('/')}/{place.name}"
                if place.info is not None:
                    return unsafe(place.info, full, rules.trusted, entries=entries)
                if not absent:
                    return f"`{full}` does not exist"
                above = os.fstat(place.folder.handle)
                return unsafe(above, place.folder.path, rules.trusted, entries=True)
        except IsADirectoryError as error:
            return unsafe(*_nameless(error, rules), rules.trusted, entries=entries)
    except UnsafePathError as error:
        return str(error.strerror)
    except OSError as error:
        if absent and isinstance(error, FileNotFoundError):
            return why_untrusted(Path(error.filename or path).parent, rules.trusted, entries=True)
        return f"`{error.filename or path}`: {error.strerror}"


def _nameless(error: IsADirectoryError, rules: PathRules) -> tuple[os.stat_result, str]:
    """The folder of a path that `locate` rejects because it ends without a name: `/`, `DIR/..`."""
    folder = descend(error.filename, rules, None)
    try:
        return os.fstat(folder.handle), folder.path
    finally:
        os.close(folder.handle)


class _Owners:
    """Rules that accept everything and record the first owner that is not trusted.

    Attributes:
        first: the account; None until one was found.
    """

    strict = True

    def __init__(self, trusted: frozenset[int]) -> None:
        self.first: int | None = None
        self._trusted = trusted

    def may_enter(self, info: os.stat_result, _path: str) -> None:
        if self.first is None and info.st_uid not in self._trusted:
            self.first = info.st_uid

    def may_follow(self, info: os.stat_result, _parent: os.stat_result, path: str) -> None:
        self.may_enter(info, path)


def foreign_owner(path: str | Path) -> int | None:
    """The first account other than root that owns a file or any folder or link of its path.

    A program should run as that account. Whether others could change it is a different question,
    which `why_untrusted` answers from modes too.
    """
    if not POSIX:
        return None
    owners = _Owners(trusted_accounts())
    try:
        try:
            with locate(path, owners) as place:
                if place.info is not None:
                    owners.may_enter(place.info, place.name)
        except IsADirectoryError as error:
            _nameless(error, owners)
    except OSError:  # what cannot be reached cannot be run, and the folders above it were judged
        pass
    return owners.first
