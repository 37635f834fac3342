"""The `lock` file with which torch guards the build of an op.

torch before 2.14 (`utils/file_baton.py`) keeps the file open while it builds, and removes it
afterwards. A process that is killed in between leaves the file, and the next one waits for it
forever. Newer releases lock the file in the kernel and leave it in place: there it means nothing,
and must not be removed, since another process may wait for that lock. Standard library only, Python
3.8 and later: used by the ranks and by the parent that cleans up after them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from typing import Iterator, List, Optional

NAME = "lock"
#: If a builder may run on another host or in another container, only the lock's age decides.
UNSEEN_SECONDS = 600.0
#: A builder that has just created the file may not be visible yet, or may be about to end.
LOOKS, BETWEEN_SECONDS = 3, 0.3
_OWN_FILESYSTEMS = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "tmpfs", "f2fs"})
#: Inode of the initial PID namespace (`PROC_PID_INIT_INO`, include/linux/proc_ns.h).
_FIRST_NAMESPACE = "pid:[4026531836]"


def file_blocks() -> bool:
    """Whether this process's torch waits until the file is gone; True if torch is not loaded."""
    module = sys.modules.get("torch.utils.cpp_extension")
    return module is None or hasattr(module, "FileBaton")


def holders(path: str) -> List[int]:
    """Processes of this host that have a file open."""
    found = []
    try:
        want = os.stat(path)
        entries = os.listdir("/proc")
    except OSError:
        return []
    for entry in entries:
        if not entry.isdigit():
            continue
        folder = "/proc/%s/fd" % entry
        with contextlib.suppress(OSError):
            for number in os.listdir(folder):
                with contextlib.suppress(OSError):
                    have = os.stat("%s/%s" % (folder, number))
                    if (have.st_dev, have.st_ino) == (want.st_dev, want.st_ino):
                        found.append(int(entry))
                        break
    return found


def _mount(path: str) -> str:
    """The file system type of a path; empty if unknown."""
    real, best, kind = os.path.realpath(path), "", ""
    with contextlib.suppress(OSError), open("/proc/self/mounts") as stream:
        for line in stream:
            words = line.split()
            place = words[1].replace("\\040", " ")
            inside = real == place or real.startswith(place.rstrip("/") + "/")
            if inside and len(place) >= len(best):
                best, kind = place, words[2]
    return kind


def all_builders_visible(path: str) -> bool:
    """Whether every process that may build there is visible to us."""
    try:
        owner, space = os.stat(path).st_uid, os.readlink("/proc/self/ns/pid")
    except OSError:
        return False
    if os.geteuid() not in (0, owner):
        return False
    kind = _mount(path)
    # only a container's own processes see its own layer; others see what is mounted into it
    return kind == "overlay" or (kind in _OWN_FILESYSTEMS and space == _FIRST_NAMESPACE)


def is_stale(path: str) -> bool:
    """Whether no process will ever remove this lock."""
    for look in range(LOOKS):
        if look:
            time.sleep(BETWEEN_SECONDS)
        try:
            age = time.time() - os.stat(path).st_mtime
        except OSError:
            return False
        if holders(path):
            return False
    return age > UNSEEN_SECONDS or all_builders_visible(path)


def _descendants(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, task)) as stream:
                for child in stream.read().split():
                    yield int(child)
                    yield from _descendants(int(child))


def release_own() -> None:
    """Ends the children of this process, and removes those of its locks that others wait for."""
    for pid in list(_descendants(os.getpid())):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    if not file_blocks():
        return
    with contextlib.suppress(OSError):
        for number in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                path = os.readlink("/proc/self/fd/" + number)
                if os.path.basename(path) == NAME:
                    os.unlink(path)


def remove_left(path: str, since: float) -> bool:
    """Removes a lock created after `since` (seconds since the epoch) that no process holds."""
    with contextlib.suppress(OSError):
        if os.stat(path).st_mtime >= since and not holders(path):
            os.unlink(path)
            return True
    return False


def wait_for(path: str) -> Optional[float]:
    """Waits for a live builder as torch would, but not for a dead one.

    Returns:
        The age in seconds of a stale lock; None if there is none.
    """
    while os.path.exists(path):
        if is_stale(path):
            with contextlib.suppress(OSError):
                return max(0.0, time.time() - os.stat(path).st_mtime)
        time.sleep(BETWEEN_SECONDS)
    return None
