"""What a fix has changed, recorded beforehand, so that undo works after a crash at any point.

A journal is a file of JSON lines: a header, then one *undo operation* for each change, synced to
the disk before the change is made. Undo carries them out from the last to the first; each is
idempotent, so that an interrupted undo can be run again.

Undo removes files and runs programs, so a journal is trusted only as a whole: every line ends with
a seal (an HMAC over it and the seal before it, with a key that only the owner can read), the header
contains the owner of the journal and the environment that it changed, and the former content of
files is bound by its SHA-256. A journal that was edited, copied from another account, or whose
environment has been replaced is rejected before anything is undone.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import hmac
import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import platformdirs

from dsdoctor import files
from dsdoctor.errors import UsageError
from dsdoctor.safe_path import UnsafePathError

SUFFIX = ".jsonl"
#: Increases when an older dsdoctor could not undo what a newer one recorded, or vice versa.
VERSION = 2
_KEY_NAME = "key"
_SEAL = b', "seal": "'


class JournalError(Exception):
    """A journal cannot be trusted, and why, in one line."""


def state_folder() -> Path:
    """Where journals, backups and logs are saved (`XDG_STATE_HOME`)."""
    return Path(platformdirs.user_state_dir("dsdoctor")) / "fixes"


class Journal:
    """The journal of one fix.

    Attributes:
        path: the file.
        backups: folder with former contents of files.
        log: file with the output of the programs.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.backups = path.with_suffix(".d")
        self.log = path.with_suffix(".log")
        self._seal: str | None = None

    @classmethod
    def begin(
        cls,
        name: str,
        header: dict[str, Any],
        folder: Path | None = None,
        prefix: Path | None = None,
    ) -> Journal:
        """Creates the journal of a fix that is about to start.

        Args:
            name: name of the fix.
            header: further fields of the header.
            folder: folder of the journals; None = the usual place.
            prefix: folder of the environment that is changed; None = the fix changes none.

        Raises:
            UsageError: it cannot be written.
        """
        folder = folder or state_folder()
        try:
            return cls._begin(name, header, folder, prefix)
        except OSError as error:
            raise _unwritable(folder, error) from None

    @classmethod
    def _begin(
        cls, name: str, header: dict[str, Any], folder: Path, prefix: Path | None
    ) -> Journal:
        files.make_folder(folder, mode=0o700, strict=True)
        now = dt.datetime.now(dt.timezone.utc)
        stem = f"{now:%Y%m%dT%H%M%S.%f}-{name}-{uuid.uuid4().hex[:6]}"
        journal = cls(folder / f"{stem}{SUFFIX}")
        files.make_folder(journal.backups, mode=0o700, strict=True)
        bound = {
            "version": VERSION,
            "journal": journal.path.name,
            "owner": _owner(),
            "prefix": None if prefix is None else str(prefix),
            "prefix_is": None if prefix is None else _identity(prefix),
        }
        begun = now.isoformat(timespec="seconds")
        journal._append({"fix": name, "begun": begun, **header, **bound})
        return journal

    def _append(self, record: dict[str, Any]) -> None:
        key = _key(self.path.parent)
        if self._seal is None:
            self._seal = self._last_seal(key)
        body = json.dumps(record, ensure_ascii=True).encode("ascii")
        seal = _sealed(key, self._seal, body)
        line = body[:-1] + _SEAL + seal.encode("ascii") + b'"}\n'
        files.append(self.path, line, strict=True)
        self._seal = seal

    def _last_seal(self, key: bytes) -> str:
        """The seal that the next line follows; a line that a crash cut off is removed."""
        try:
            content = files.read(self.path, strict=True)
        except FileNotFoundError:
            return ""
        whole, _, torn = content.rpartition(b"\n")
        if torn:
            files.write(self.path, whole + b"\n" if whole else b"", mode=0o600, strict=True)
        seal = ""
        for number, line in enumerate(whole.split(b"\n") if whole else (), 1):
            seal = _checked(key, seal, line, self.path.name, number)
        return seal

    def verify(self) -> None:
        """Makes sure that undo may trust this journal.

        Raises:
            JournalError: it was edited, is another account's, or its environment was replaced.
        """
        try:
            self._seal = self._last_seal(_key(self.path.parent))
            records = self.records()
        except OSError as error:
            raise JournalError(f"`{self.path}` cannot be read: {error.strerror}") from None
        head = records[0] if records else {}
        if head.get("version") != VERSION:
            raise JournalError(f"`{self.path.name}` was written by another version of dsdoctor")
        if head.get("journal") != self.path.name or head.get("owner") != _owner():
            raise JournalError(f"`{self.path.name}` is the journal of another account or fix")
        prefix = head.get("prefix")
        if prefix and Path(prefix).exists() and _identity(Path(prefix)) != head.get("prefix_is"):
            raise JournalError(
                f"the environment `{prefix}` was replaced since; "
                f"`{self.path.name}` says nothing about the new one"
            )
        for record in records:
            if "backup" in record:
                self._verify_backup(record)

    def _verify_backup(self, record: dict[str, Any]) -> None:
        backup = self.backup(record)
        try:
            found = hashlib.sha256(files.read(backup, strict=True, limit=1 << 32)).hexdigest()
        except OSError as error:
            raise JournalError(f"`{backup}` cannot be read: {error.strerror}") from None
        if found != record.get("sha256"):
            raise JournalError(f"`{backup}` was changed since `{record['path']}` was saved in it")

    def backup(self, record: dict[str, Any]) -> Path:
        """The path at which the previous content of a file is saved."""
        return self.backups / Path(str(record["backup"])).name

    def note(self, op: str, **fields: Any) -> None:
        """Records how the next change is undone."""
        self._append({"op": op, **fields})

    def end(self, outcome: str) -> None:
        """Records that the fix has ended."""
        self._append({"end": outcome})

    def undone(self, number: int) -> None:
        """Records that the change of a record was undone, so it is not undone again."""
        self._append({"undone": number})

    def records(self) -> list[dict[str, Any]]:
        """All records; a last line that a crash cut off was followed by no change."""
        found: list[dict[str, Any]] = []
        for line in self.path.read_bytes().split(b"\n"):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                record = None
            # one item per line, so that a record's number is its index
            found.append(record if isinstance(record, dict) else {})
        return found

    def retire(self) -> None:
        """Archives the journal after its undo: it is no longer the last one."""
        with contextlib.suppress(OSError):
            files.remove(self.backups, tree=True, strict=True)
        files.rename(self.path, self.path.with_suffix(".undone").name, strict=True)

    # ---- changes of files ------------------------------------------------------------------

    def note_file(self, path: Path, after: bytes | None = None) -> None:
        """Records what is at a path now: a file, a link or nothing, and the missing folders."""
        for parent in reversed(list(missing_parents(path))):
            self.note("folder", path=str(parent))
        if path.is_symlink():
            self.note("restore", path=str(path), link=os.readlink(path))  # noqa: PTH115  # the text itself
        elif path.is_file():
            backup = self.backups / uuid.uuid4().hex
            info = path.stat()
            self.note(
                "restore",
                path=str(path),
                backup=backup.name,
                sha256=files.copy(path, backup, strict=True),
                mode=info.st_mode & 0o7777,
                mtime_ns=info.st_mtime_ns,
                after=None if after is None else hashlib.sha256(after).hexdigest(),
            )
        else:
            self.note("restore", path=str(path), absent=True)


def _owner() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 0


def _identity(folder: Path) -> list[int] | None:
    """What changes if a folder is replaced by one with the same name, but not after a reboot."""
    try:
        info = folder.stat()
    except OSError:
        return None
    return [info.st_ino, info.st_uid]


def _unwritable(folder: Path, error: OSError) -> UsageError:
    also = ", or run as the account that it belongs to" * isinstance(error, UnsafePathError)
    return UsageError(
        f"fixes cannot be recorded in `{folder}`: {error.strerror}; set `XDG_STATE_HOME`{also}"
    )


def _key(folder: Path) -> bytes:
    """The key of the seals; made with the first journal."""
    path = folder / _KEY_NAME
    try:
        return files.read(path, strict=True)
    except FileNotFoundError:
        key = os.urandom(32)
        files.write(path, key, mode=0o600, strict=True, durable=True)
        return key


def _sealed(key: bytes, before: str, body: bytes) -> str:
    return hmac.new(key, before.encode("ascii") + body, "sha256").hexdigest()


def _checked(key: bytes, before: str, line: bytes, name: str, number: int) -> str:
    body, _, end = line.rpartition(_SEAL)
    seal = _sealed(key, before, body + b"}")
    if not hmac.compare_digest(end, seal.encode("ascii") + b'"}'):
        raise JournalError(f"line {number} of `{name}` was changed after dsdoctor wrote it")
    return seal


def missing_parents(path: Path) -> Iterator[Path]:
    """Folders above a path that do not exist, the nearest first."""
    for parent in path.parents:
        if os.path.lexists(parent):
            return
        yield parent


def open_journals(folder: Path | None = None) -> list[Journal]:
    """Journals that were not undone, the last one first."""
    folder = folder or state_folder()
    return [Journal(path) for path in sorted(folder.glob(f"*{SUFFIX}"), reverse=True)]


def unfinished(folder: Path | None = None) -> Journal | None:
    """The last fix, if it never finished (a crash, a power cut)."""
    for journal in open_journals(folder)[:1]:
        if not any("end" in record for record in journal.records()):
            return journal
    return None


@contextlib.contextmanager
def only_one(folder: Path | None = None, also: Path | None = None) -> Iterator[None]:
    """Holds the lock against two fixes at once, of this user and in one environment.

    Args:
        folder: folder of the journals; None = the usual place.
        also: folder of the environment; a lock in it keeps other users out.

    Raises:
        UsageError: another fix is running, or the platform has no such locks.
    """
    try:
        import fcntl  # noqa: PLC0415  # not on Windows
    except ImportError:
        raise UsageError("`dsdoctor fix` works on Linux and macOS; use `--dry-run` here") from None
    folder = folder or state_folder()
    try:
        files.make_folder(folder, mode=0o700, strict=True)
    except OSError as error:
        raise _unwritable(folder, error) from None
    handles: list[int] = []
    try:
        for place in (folder, *([also] if also is not None and also.is_dir() else [])):
            handle = os.open(place, os.O_RDONLY)
            handles.append(handle)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"another `dsdoctor fix` is running (it holds the lock on `{place}`); "
                    "wait until it has ended"
                ) from None
            except OSError:
                continue  # a file system without locks: the user's own folder is guarded at least
        yield
    finally:
        for handle in handles:
            os.close(handle)
