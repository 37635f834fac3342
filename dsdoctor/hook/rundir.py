"""The run folder: the node's last verdict, a lock, notes of jobs and drains, counters of fail-open.

Standard library only. Methods that fail for lack of space or permission report it by their return
value, because a hook continues without its folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import sys
import time
from pathlib import Path
from typing import Any

from dsdoctor import files
from dsdoctor.safe_path import is_root, unsafe

if sys.platform != "win32":
    import fcntl

#: Twice the time limit of a worker: one that holds the lock for longer is stuck.
STUCK_SECONDS = 120.0
NODE_FILE = "node.json"
SNAPSHOT_FILE = "node-snapshot.json"
_LOCK_FILE = "lock"
_COUNTERS = "fail-open"
_STAMP = "blocked"
_JOB = "job"
_EPILOGS = "epilogs"
_CAUSE = re.compile(r"[A-Za-z0-9_-]{1,64}")
#: Files of a hook that judges for one job only; the number is its pid.
_OF_A_WORKER = re.compile(r"own\.[0-9]+\.json|worker\.[0-9]+\.log")
#: How long the note of a job is kept if no epilog removes it.
_KEEP_SECONDS = 7 * 86400.0


class RunFolderError(Exception):
    """The folder cannot be used; the text says why, in one line."""


def default_path(*, root: bool = False, believed: bool = True) -> Path:
    """The run folder without --run-folder.

    Args:
        root: return the folder of root's hooks, whichever account this process has.
        believed: root may trust the environment, because it is not that of a job.
    """
    if os.environ.get("DSDOCTOR_RUN_FOLDER") and (believed or not is_root()):
        return Path(os.environ["DSDOCTOR_RUN_FOLDER"])
    if root or (hasattr(os, "geteuid") and os.geteuid() == 0):
        return Path("/run/dsdoctor")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime) / "dsdoctor"
    return Path(f"/tmp/dsdoctor-{os.getuid() if hasattr(os, 'getuid') else 'user'}")  # noqa: S108


def boot_id() -> str:
    """An id that changes with every boot; empty if the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


class RunFolder:
    """A folder that only its owner may write.

    Attributes:
        path: where it is.
    """

    def __init__(self, path: Path) -> None:
        """Creates the folder if it does not exist.

        Raises:
            RunFolderError: it cannot be created, or other accounts could have written to it.
        """
        self.path = path
        try:
            files.make_folder(path, mode=0o755, strict=True)
            info = path.lstat()
        except OSError as error:
            raise RunFolderError(f"run folder `{path}` cannot be used ({error.strerror})") from None
        if not stat.S_ISDIR(info.st_mode):
            raise RunFolderError(f"run folder `{path}` is not a folder")
        own = hasattr(os, "geteuid") and frozenset({os.geteuid()})
        if own and unsafe(info, str(path), own, entries=True):
            raise RunFolderError(f"run folder `{path}` can be written by others")

    def write(self, name: str, value: Any) -> bool:
        """Writes a JSON file completely or not at all; False if that failed."""
        return write_json(self.path / name, value)

    def read(self, name: str) -> dict[str, Any] | None:
        """A JSON file of this boot; None if it does not exist, is broken or of another boot."""
        try:
            value = json.loads((self.path / name).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(value, dict) or value.get("boot_id") != boot_id():
            return None
        return value

    def fresh(self, name: str, max_age: float, key: str) -> dict[str, Any] | None:
        """The same, if it is recent enough and was written with the same settings."""
        value = self.read(name)
        if value is None or value.get("key") != key:
            return None
        made = value.get("time")
        if not isinstance(made, int | float) or not -1.0 <= time.time() - made <= max_age:
            return None
        return value

    def lock(self) -> int | None:
        """Acquires the lock and returns its descriptor; None if another process holds it."""
        try:
            handle = files.open_lock(self.path / _LOCK_FILE, strict=True)
        except OSError:
            return None
        if sys.platform == "win32":
            return handle
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            return None
        with contextlib.suppress(OSError):
            os.utime(handle)
        return handle

    def lock_age(self) -> float:
        """Seconds since the lock was last acquired."""
        try:
            return time.time() - (self.path / _LOCK_FILE).stat().st_mtime
        except OSError:
            return 0.0

    def count(self, cause: str) -> None:
        """Counts a decision that let a job pass though the check was inconclusive.

        Each appends one byte to a file, so that the shell script can count without an interpreter.
        """
        with contextlib.suppress(OSError):
            folder = self.path / _COUNTERS
            files.make_folder(folder, mode=0o755, strict=True)
            handle = files.open_append(folder / cause, mode=0o644, strict=True)
            try:
                os.write(handle, b".")
            finally:
                os.close(handle)

    def counts(self) -> dict[str, int]:
        """How many jobs passed without a verdict since the last boot, by cause."""
        try:
            entries = list(os.scandir(self.path / _COUNTERS))
        except OSError:
            return {}
        return {
            entry.name: entry.stat().st_size
            for entry in sorted(entries, key=lambda e: e.name)
            if _CAUSE.fullmatch(entry.name)  # they become labels of Prometheus
        }

    def sweep(self) -> None:
        """Removes results and output of workers whose hook was killed before they ended."""
        left = [path for path in self.path.iterdir() if _OF_A_WORKER.fullmatch(path.name)]
        for path in left:
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > STUCK_SECONDS:
                    path.unlink()

    def keep_job(self, node: str, job: str, value: dict[str, Any]) -> None:
        """Stores the verdict of a job's prolog, and removes those that are older than a week."""
        self.write(_job_file(node, job), value)
        with contextlib.suppress(OSError):
            for old in self.path.glob(f"{_JOB}.*"):
                if time.time() - old.stat().st_mtime > _KEEP_SECONDS:
                    old.unlink()

    def jobs(self, node: str) -> dict[str, dict[str, Any]]:
        """What prologs on a node recorded, by job, for jobs whose epilog has not run yet."""
        found = {}
        for path in self.path.glob(f"{_JOB}.{_safe(node)}.*.json"):
            value = self.read(path.name)
            if value is not None and value.get("node") == node and value.get("job"):
                found[str(value["job"])] = value
        return found

    def epilogs_since(self) -> float:
        """When the first epilog of this boot ran, in seconds since the epoch; now, if this is it.

        Notes of jobs that began before then may be of jobs that ended without an epilog.
        """
        path = self.path / _EPILOGS
        try:
            handle = files.open_append(path, mode=0o644, strict=True)
            os.close(handle)
            return path.stat().st_mtime
        except OSError:
            return time.time()

    def forget_job(self, node: str, job: str) -> None:
        """Removes what a job's prolog recorded, after the job has ended."""
        with contextlib.suppress(OSError):
            (self.path / _job_file(node, job)).unlink()

    def stamp(self, node: str, value: dict[str, Any]) -> bool:
        """Records that a prolog or an epilog drains this node, for `slurm-health`."""
        return self.write(f"{_STAMP}.{_safe(node)}.json", value)

    def stamped(self, node: str) -> dict[str, Any] | None:
        """What `stamp` recorded since the last boot; None if nothing."""
        return self.read(f"{_STAMP}.{_safe(node)}.json")

    def unstamp(self, node: str) -> None:
        """Removes the stamp."""
        with contextlib.suppress(OSError):
            (self.path / f"{_STAMP}.{_safe(node)}.json").unlink()


def read_job(folder: Path, node: str, job: str) -> dict[str, str]:
    """The host's index and the UUID of a job's GPUs, from its prolog's note; empty without one."""
    try:
        info = folder.stat()
        value = json.loads((folder / _job_file(node, job)).read_bytes())
        gpus = value["gpus"] if value["boot_id"] == boot_id() and info.st_uid == 0 else {}
        return {str(number): str(uuid) for number, uuid in gpus.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _job_file(node: str, job: str) -> str:
    return f"{_JOB}.{_safe(node)}.{_safe(job)}.json"


def write_json(path: Path, value: Any) -> bool:
    """Writes one line of JSON completely or not at all; False if that failed."""
    try:
        files.write(path, json.dumps(value) + "\n", mode=0o644, strict=True)
    except OSError:
        return False
    return True


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", name) or "node"
