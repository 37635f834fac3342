"""What a fix has changed, noted before each change, so that undo works from any point of a crash.

A journal is a file of JSON lines: a header, then one *undo operation* for each change, synced to
the disk before the change is made. Undo carries them out from the last to the first; each is
idempotent, so that an undo that was cut off can be run again.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import platformdirs

from dsdoctor.errors import UsageError

SUFFIX = ".jsonl"


def state_folder() -> Path:
    """Where journals, backups and logs are kept (`XDG_STATE_HOME`)."""
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

    @classmethod
    def begin(cls, name: str, header: dict[str, Any], folder: Path | None = None) -> Journal:
        """Makes the journal of a fix that is about to start."""
        folder = folder or state_folder()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        now = dt.datetime.now(dt.timezone.utc)
        stem = f"{now:%Y%m%dT%H%M%S.%f}-{name}-{uuid.uuid4().hex[:6]}"
        journal = cls(folder / f"{stem}{SUFFIX}")
        journal.backups.mkdir(mode=0o700)
        journal._append({"fix": name, "begun": now.isoformat(timespec="seconds"), **header})
        return journal

    def _append(self, record: dict[str, Any]) -> None:
        line = json.dumps(record, ensure_ascii=True) + "\n"
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(handle, line.encode("ascii"))
            os.fsync(handle)
        finally:
            os.close(handle)

    def note(self, op: str, **fields: Any) -> None:
        """Notes how the change that comes next is undone."""
        self._append({"op": op, **fields})

    def end(self, outcome: str) -> None:
        """Notes that the fix has ended."""
        self._append({"end": outcome})

    def undone(self, number: int) -> None:
        """Notes that the change of a record was undone, so that it is not undone again."""
        self._append({"undone": number})

    def records(self) -> list[dict[str, Any]]:
        """All records; a last line that a crash cut off was followed by no change."""
        found: list[dict[str, Any]] = []
        for line in self.path.read_bytes().split(b"\n"):
            try:
                record = json.loads(line)
            except ValueError:
                record = None
            # a place for each line, so that its number tells it
            found.append(record if isinstance(record, dict) else {})
        return found

    def retire(self) -> None:
        """Puts the journal away after its undo: it is not the last one any more."""
        shutil.rmtree(self.backups, ignore_errors=True)
        self.path.rename(self.path.with_suffix(".undone"))

    # ---- changes of files ------------------------------------------------------------------

    def note_file(self, path: Path, after: bytes | None = None) -> None:
        """Notes what is at a path now: a file, a link or nothing, and the folders that lack."""
        for parent in reversed(list(missing_parents(path))):
            self.note("folder", path=str(parent))
        if path.is_symlink():
            self.note("restore", path=str(path), link=os.readlink(path))  # noqa: PTH115  # the text itself
        elif path.is_file():
            backup = self.backups / uuid.uuid4().hex
            shutil.copyfile(path, backup)
            info = path.stat()
            self.note(
                "restore",
                path=str(path),
                backup=str(backup),
                mode=info.st_mode & 0o7777,
                mtime_ns=info.st_mtime_ns,
                after=None if after is None else hashlib.sha256(after).hexdigest(),
            )
        else:
            self.note("restore", path=str(path), absent=True)


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
    """The last fix, if it never came to its end (a crash, a power cut)."""
    for journal in open_journals(folder)[:1]:
        if not any("end" in record for record in journal.records()):
            return journal
    return None


@contextlib.contextmanager
def only_one(folder: Path | None = None, also: Path | None = None) -> Iterator[None]:
    """Holds the lock against two fixes at once, of this user and in one environment.

    Args:
        folder: where journals are kept.
        also: folder of the environment; its own lock keeps another user out.

    Raises:
        UsageError: another fix is at work, or the platform has no such locks.
    """
    try:
        import fcntl  # noqa: PLC0415  # not on Windows
    except ImportError:
        raise UsageError("`dsdoctor fix` works on Linux and macOS; use `--dry-run` here") from None
    folder = folder or state_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    handles: list[int] = []
    try:
        for place in (folder, *([also] if also is not None and also.is_dir() else [])):
            handle = os.open(place, os.O_RDONLY)
            handles.append(handle)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"another `dsdoctor fix` is at work (it holds the lock on `{place}`); "
                    "wait until it has ended"
                ) from None
            except OSError:
                continue  # a file system without locks: the user's own folder is guarded at least
        yield
    finally:
        for handle in handles:
            os.close(handle)
