"""Folders that accounts other than the tests' may enter."""

from __future__ import annotations

import stat
from pathlib import Path


def let_others_in(folder: Path) -> None:
    """Lets every account walk to `folder`; modes are only widened, as /tmp has bits to keep."""
    for place in (folder, *folder.parents):
        mode = stat.S_IMODE(place.stat().st_mode)
        if mode & 0o055 != 0o055:
            place.chmod(mode | 0o055)
