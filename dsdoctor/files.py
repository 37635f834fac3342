"""The one place that writes files: by descriptor, under a random name, then renamed.

What root writes must not follow a link of another account, and must not destroy what is not
a regular file. So a folder is opened component by component, each one judged on its descriptor; the
new content gets a random name that must not exist (`O_EXCL`, `O_NOFOLLOW`), its mode and owner are
set on the descriptor, and a rename puts it in place. Devices, FIFOs and `/dev/stdout` are written
to as they are.

Whose folders and links are accepted: `safe_path`.

Standard library only: the hooks that run before every job use it.

Over 400 lines because all that writes has to be read together to be trusted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
import sys
import time
from pathlib import Path

from dsdoctor.safe_path import (
    NOFOLLOW,
    POSIX,
    Folder,
    Place,
    Rules,
    UnsafePathError,
    account,
    descend,
    is_root,
    locate,
    rules_for,
    why_untrusted,
)

#: How long a device or a FIFO may accept nothing before writing fails, in seconds.
DEVICE_SECONDS = 5.0
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_NOCTTY = getattr(os, "O_NOCTTY", 0)
#: Errors of creating a file next to one that can itself be written: a mount point, a read-only
#: folder.
_IN_PLACE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV)


# ---- writing -----------------------------------------------------------------------------------


def write(
    path: str | Path,
    data: bytes | str,
    *,
    mode: int | None = None,
    strict: bool = False,
    follow: bool = True,
    make: int | None = None,
    durable: bool = False,
    mtime_ns: int | None = None,
) -> None:
    """Writes a file whole or not at all; what is not a regular file is written to as it is.

    Args:
        path: which.
        data: its content; text becomes UTF-8.
        mode: permission bits; None = those of the existing file, or what the umask leaves.
        strict: for root: only root may control the folders of the path.
        follow: a link at the end is followed; otherwise it is replaced.
        make: permission bits of missing folders; None = they are not created.
        durable: the file and its name are on the disk when this returns.
        mtime_ns: time of last modification, in nanoseconds; None = now.

    Raises:
        UnsafePathError: another account controls part of the path.
        OSError: it cannot be written.
    """
    content = data.encode("utf-8", "replace") if isinstance(data, str) else data
    if not POSIX:
        _write_by_path(Path(path), content)
        return
    rules = rules_for(strict=strict)
    with locate(path, rules, make=make, follow=follow) as place:
        if place.own is not None:
            handle = os.dup(place.own)
            try:
                _pour(handle, content, os.fspath(path))
            finally:
                os.close(handle)
            return
        kind = 0 if place.info is None else stat.S_IFMT(place.info.st_mode)
        if kind in (0, stat.S_IFREG, stat.S_IFLNK):
            try:
                _replace(place, content, mode, rules, durable=durable, mtime_ns=mtime_ns)
            except OSError as error:
                if kind != stat.S_IFREG or error.errno not in _IN_PLACE:
                    raise
                _overwrite(place, content, rules, os.fspath(path))
        else:
            _to_device(place, content, rules, os.fspath(path))


def _write_by_path(path: Path, content: bytes) -> None:
    """For Windows, which has neither descriptors of folders nor root."""
    fresh = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        fresh.write_bytes(content)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def _fresh_name(name: str) -> str:
    return f".{name[:120]}.{os.urandom(8).hex()}"


def _replace(
    place: Place,
    content: bytes,
    mode: int | None,
    rules: Rules,
    *,
    durable: bool,
    mtime_ns: int | None,
) -> None:
    info = place.info if place.info and stat.S_ISREG(place.info.st_mode) else None
    if mode is None and info is not None and (not rules.root or info.st_uid in rules.trusted):
        mode = stat.S_IMODE(info.st_mode) & 0o777
    fresh = _fresh_name(place.name)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NOFOLLOW
    handle = os.open(fresh, flags, 0o666 if mode is None else 0o600, dir_fd=place.folder.handle)
    try:
        try:
            _pour(handle, content, place.name)
            if rules.root and not rules.strict and info is not None:
                os.fchown(handle, info.st_uid, info.st_gid)  # as `> FILE` would leave it
            if mode is not None:
                os.fchmod(handle, mode)
            if mtime_ns is not None:
                os.utime(handle, ns=(mtime_ns, mtime_ns))
            if durable:
                os.fsync(handle)
        finally:
            os.close(handle)
        os.rename(fresh, place.name, src_dir_fd=place.folder.handle, dst_dir_fd=place.folder.handle)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(fresh, dir_fd=place.folder.handle)
        raise
    if durable:
        _sync_folder(place.folder)


def _sync_folder(folder: Folder) -> None:
    with contextlib.suppress(OSError):  # a folder that may be entered and not listed
        handle = os.open(".", os.O_RDONLY, dir_fd=folder.handle)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _overwrite(place: Place, content: bytes, rules: Rules, path: str) -> None:
    """Writes to a file that cannot be replaced: a mount point, or in a read-only folder."""
    flags = os.O_WRONLY | NOFOLLOW | _NONBLOCK
    handle = os.open(place.name, flags, dir_fd=place.folder.handle)
    try:
        _judge_regular(os.fstat(handle), rules, path)
        os.ftruncate(handle, 0)
        _pour(handle, content, path)
    finally:
        os.close(handle)


def _must_be_regular(info: os.stat_result, path: str | Path) -> None:
    if not stat.S_ISREG(info.st_mode):
        raise UnsafePathError(f"`{path}` is not a regular file", os.fspath(path))


def _judge_regular(info: os.stat_result, rules: Rules, path: str) -> None:
    _must_be_regular(info, path)
    if rules.root and info.st_uid not in rules.trusted:
        raise UnsafePathError(f"`{path}` belongs to {account(info.st_uid)}", path)
    if rules.root and info.st_nlink > 1:
        raise UnsafePathError(f"`{path}` has {info.st_nlink} hard links", path)


def _to_device(place: Place, content: bytes, rules: Rules, path: str) -> None:
    flags = os.O_WRONLY | NOFOLLOW | _NONBLOCK | _NOCTTY
    if place.info is None or stat.S_ISDIR(place.info.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if stat.S_ISBLK(place.info.st_mode):
        raise UnsafePathError(f"`{path}` is a block device", path)
    own = place.info.st_uid in rules.trusted
    if rules.root and not own and (rules.strict or not stat.S_ISCHR(place.info.st_mode)):
        raise UnsafePathError(f"`{path}` belongs to {account(place.info.st_uid)}", path)
    try:
        handle = os.open(place.name, flags, dir_fd=place.folder.handle)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "no process reads it", path) from None
        raise
    try:
        now = os.fstat(handle)
        if (now.st_dev, now.st_ino) != (place.info.st_dev, place.info.st_ino):
            raise UnsafePathError(f"`{path}` was replaced while it was being opened", path)
        _pour(handle, content, path)
    finally:
        os.close(handle)


def _pour(handle: int, content: bytes, path: str) -> None:
    """Writes everything, or raises TimeoutError if nothing is accepted for DEVICE_SECONDS."""
    rest = memoryview(content)
    deadline = time.monotonic() + DEVICE_SECONDS
    while rest:
        try:
            rest = rest[os.write(handle, rest) :]
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    errno.ETIMEDOUT, "its reader does not accept data", path
                ) from None
            select.select([], [handle], [], 0.1)
        else:
            deadline = time.monotonic() + DEVICE_SECONDS


def open_append(path: str | Path, *, mode: int = 0o600, strict: bool = False) -> int:
    """Opens a regular file for appending, and creates it if it does not exist.

    Raises:
        UnsafePathError: another account controls part of the path, or it is not a regular file.
        OSError: it cannot be opened.
    """
    return _open(path, os.O_WRONLY | os.O_APPEND, mode, strict=strict)


def open_lock(path: str | Path, *, strict: bool = False) -> int:
    """Opens a file for locking, and creates it if it does not exist.

    Raises:
        UnsafePathError: another account controls part of the path, or it is not a regular file.
        OSError: it cannot be opened.
    """
    return _open(path, os.O_RDWR, 0o600, strict=strict)


def _open(path: str | Path, flags: int, mode: int, *, strict: bool) -> int:
    if not POSIX:
        return os.open(path, flags | os.O_CREAT, mode)
    rules = rules_for(strict=strict)
    with locate(path, rules, follow=False) as place:
        if place.info is not None:
            # before opening, which can have an effect on a device
            _judge_regular(place.info, rules, os.fspath(path))
        handle = os.open(
            place.name, flags | os.O_CREAT | NOFOLLOW | _NONBLOCK, mode, dir_fd=place.folder.handle
        )
    try:
        _judge_regular(os.fstat(handle), rules, os.fspath(path))
    except BaseException:
        os.close(handle)
        raise
    return handle


def open_new(path: str | Path, *, mode: int = 0o600, strict: bool = False) -> int:
    """Opens a new file for writing; an existing file or link of that name is removed first.

    Raises:
        UnsafePathError: another account controls part of the path.
        OSError: it cannot be opened.
    """
    if not POSIX:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with locate(path, rules_for(strict=strict), follow=False) as place:
        if place.info is not None:
            os.unlink(place.name, dir_fd=place.folder.handle)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NOFOLLOW
        return os.open(place.name, flags, mode, dir_fd=place.folder.handle)


def append(path: str | Path, data: bytes, *, mode: int = 0o600, strict: bool = False) -> None:
    """Appends to a regular file and syncs it to the disk.

    Raises:
        UnsafePathError: another account controls part of the path, or it is not a regular file.
        OSError: it cannot be written.
    """
    handle = open_append(path, mode=mode, strict=strict)
    try:
        _pour(handle, data, os.fspath(path))
        os.fsync(handle)
    finally:
        os.close(handle)


def copy(source: str | Path, target: str | Path, *, mode: int = 0o600, strict: bool = False) -> str:
    """Copies a regular file to a new one and returns the SHA-256 of what was copied.

    Raises:
        UnsafePathError: another account controls part of a path, or the source is not a regular
            file.
        OSError: one of them cannot be read or written.
    """
    import hashlib  # noqa: PLC0415  # hooks do not need it

    digest = hashlib.sha256()
    reader = open_read(source, strict=strict)
    try:
        writer = open_new(target, mode=mode, strict=strict)
        try:
            while chunk := os.read(reader, 1 << 20):
                digest.update(chunk)
                _pour(writer, chunk, os.fspath(target))
            os.fsync(writer)
        finally:
            os.close(writer)
    finally:
        os.close(reader)
    return digest.hexdigest()


# ---- folders, links, removal -------------------------------------------------------------------


def make_folder(path: str | Path, *, mode: int = 0o777, strict: bool = False) -> None:
    """Creates a folder and its missing parents.

    Raises:
        UnsafePathError: another account controls part of the path.
        OSError: it cannot be made.
    """
    if not POSIX:
        Path(path).mkdir(parents=True, exist_ok=True)
        return
    os.close(descend(os.fspath(path), rules_for(strict=strict), mode).handle)


def user_config_folder() -> Path | None:
    """The folder of a user's configuration; None for an account without a home."""
    if sys.platform == "linux":  # as platformdirs, whose import takes 6 ms
        config, home = Path(os.environ.get("XDG_CONFIG_HOME", "")), Path(os.environ.get("HOME", ""))
        if config.is_absolute():
            return config / "dsdoctor"
        if home.is_absolute():
            return home / ".config" / "dsdoctor"
    import platformdirs  # noqa: PLC0415  # only on other systems

    try:
        return Path(platformdirs.user_config_dir("dsdoctor"))
    except RuntimeError:
        return None


def symlink(target: str, link: str | Path, *, strict: bool = False) -> None:
    """Creates a link; it replaces an existing file or link.

    Raises:
        UnsafePathError: another account controls part of the path.
        OSError: it cannot be made.
    """
    if not POSIX:
        Path(link).symlink_to(target)
        return
    with locate(link, rules_for(strict=strict), make=0o777, follow=False) as place:
        fresh, handle = _fresh_name(place.name), place.folder.handle
        os.symlink(target, fresh, dir_fd=handle)
        try:
            os.rename(fresh, place.name, src_dir_fd=handle, dst_dir_fd=handle)
        except BaseException:
            os.unlink(fresh, dir_fd=handle)
            raise


def rename(path: str | Path, name: str, *, strict: bool = False) -> None:
    """Gives a file or folder another name in the same folder.

    Raises:
        UnsafePathError: another account controls part of the path.
        OSError: it cannot be renamed.
    """
    if not POSIX:
        Path(path).replace(Path(path).with_name(name))
        return
    with locate(path, rules_for(strict=strict), follow=False) as place:
        handle = place.folder.handle
        os.rename(place.name, name, src_dir_fd=handle, dst_dir_fd=handle)


def remove(path: str | Path, *, strict: bool = False, tree: bool = False) -> None:
    """Removes a file, a link, or with `tree` a folder and its content.

    Links are removed, never followed. A missing path is not an error.

    Raises:
        UnsafePathError: another account controls part of the path.
        OSError: it cannot be removed.
    """
    if not POSIX:
        import shutil  # noqa: PLC0415  # only on Windows

        shutil.rmtree(path) if tree and Path(path).is_dir() else Path(path).unlink(missing_ok=True)
        return
    with (
        contextlib.suppress(FileNotFoundError),
        locate(path, rules_for(strict=strict), follow=False) as place,
    ):
        if place.info is None:
            return
        if tree and stat.S_ISDIR(place.info.st_mode):
            _remove_tree(place.folder.handle, place.name)
        else:
            os.unlink(place.name, dir_fd=place.folder.handle)


def remove_folder(path: str | Path, *, strict: bool = False) -> None:
    """Removes an empty folder.

    Raises:
        UnsafePathError: another account controls part of the path.
        OSError: it is not empty, or cannot be removed.
    """
    if not POSIX:
        Path(path).rmdir()
        return
    with locate(path, rules_for(strict=strict), follow=False) as place:
        os.rmdir(place.name, dir_fd=place.folder.handle)


def _remove_tree(parent: int, name: str) -> None:
    """Depth first, with an explicit stack: the interpreter's would limit the depth."""
    flags = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | NOFOLLOW
    open_folders = [(parent, name, os.open(name, flags, dir_fd=parent))]
    try:
        while open_folders:
            above, folder, handle = open_folders[-1]
            deeper = None
            with os.scandir(handle) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        deeper = entry.name
                        break
                    os.unlink(entry.name, dir_fd=handle)
            if deeper is not None:
                open_folders.append((handle, deeper, os.open(deeper, flags, dir_fd=handle)))
                continue
            os.rmdir(folder, dir_fd=above)
            os.close(handle)
            open_folders.pop()
    finally:
        for _, _, handle in open_folders:
            os.close(handle)


# ---- reading -----------------------------------------------------------------------------------


def open_read(path: str | Path, *, strict: bool = False, follow: bool = True) -> int:
    """Opens a regular file for reading; a FIFO or a device is refused and never waited for.

    Args:
        path: which.
        strict: for root: only root may control the file and the folders of the path.
        follow: a link at the end is followed.

    Raises:
        UnsafePathError: another account controls part of the path, or it is not a regular file.
        OSError: it cannot be opened.
    """
    if not POSIX:
        return os.open(path, os.O_RDONLY)
    rules = rules_for(strict=strict)
    with locate(path, rules, follow=follow) as place:
        flags = os.O_RDONLY | NOFOLLOW | _NONBLOCK | _NOCTTY
        if place.own is not None:
            return os.dup(place.own)
        if place.info is not None:
            _must_be_regular(place.info, path)
        try:
            handle = os.open(place.name, flags, dir_fd=place.folder.handle)
        except OSError as error:
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    try:
        info = os.fstat(handle)
        _must_be_regular(info, path)
        rules.may_enter(info, os.fspath(path))
    except BaseException:
        os.close(handle)
        raise
    return handle


def read(path: str | Path, *, strict: bool = False, limit: int = 64 << 20) -> bytes:
    """Reads a regular file.

    Args:
        path: which.
        strict: for root: only root may control the file and the folders of the path.
        limit: largest size, in bytes.

    Raises:
        UnsafePathError: another account controls part of the path, or it is not a regular file.
        OSError: it cannot be read, or is larger.
    """
    handle = open_read(path, strict=strict)
    with os.fdopen(handle, "rb") as file:
        found = file.read(limit + 1)
    if len(found) > limit:
        raise OSError(errno.EFBIG, f"has more than {limit} bytes", os.fspath(path))
    return found


def open_to_all(folder: str | Path) -> None:
    """Lets every account enter a folder and list it.

    Raises:
        OSError: it belongs to another account.
    """
    handle = os.open(folder, os.O_RDONLY | NOFOLLOW)
    try:
        os.fchmod(handle, 0o755)
    finally:
        os.close(handle)


def scratch_folder(prefix: str, inside: str | Path | None = None) -> Path:
    """A new folder that only this account may enter.

    Args:
        prefix: what its name begins with.
        inside: its parent; None = the folder for temporary files, or for root `/tmp` if another
            account controls that one.

    Raises:
        OSError: it cannot be made.
    """
    import tempfile  # noqa: PLC0415  # hooks do not need it

    if inside is None and is_root() and why_untrusted(tempfile.gettempdir()):
        inside = "/tmp"  # noqa: S108  # sticky
    return Path(tempfile.mkdtemp(prefix=prefix, dir=inside))
