"""Folders of tests in /tmp, which SIGKILL leaves there: the next run removes them."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

TMP = Path("/tmp")
#: A worker writes a few files, and makes no folder.
MOST_TRIES = 5


def folder(prefix: str) -> Path:
    """A new folder whose name says which process made it; those of processes that are gone go.

    A number may belong to another process by now: then its folder stays for once.
    """
    for old in TMP.glob(f"{prefix}*-*"):
        owner = old.name[len(prefix) :].partition("-")[0]
        if owner.isdecimal() and not _is_alive(int(owner)) and old.lstat().st_uid == os.getuid():
            remove(old)
    return Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=TMP))


def remove(path: Path) -> None:
    """Removes a folder of any depth, which `shutil.rmtree` gives up with RecursionError.

    A hook's worker may write its verdict there meanwhile, so that the folder is not empty again.
    """
    for _ in range(MOST_TRIES):
        subprocess.run(["rm", "-rf", "--", str(path)], check=False, stderr=subprocess.DEVNULL)
        if not path.exists():
            return


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
