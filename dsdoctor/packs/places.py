"""Where packs are found; quick to import, so that a command can find out whether there are any."""

from __future__ import annotations

import os
from pathlib import Path

from dsdoctor import files
from dsdoctor.packs.entry_points import entry_points

GROUP = "dsdoctor.packs"
#: The name of the pack that comes with dsdoctor.
BUILTIN = "builtin"
SYSTEM_FOLDER = Path("/etc/dsdoctor/checks.d")


def user_folder() -> Path | None:
    """The checks.d folder of the user; None for an account without a home."""
    config = files.user_config_folder()
    return None if config is None else config / "checks.d"


def folders() -> list[Path]:
    """The checks.d folders of the system and of the user."""
    return [folder for folder in (SYSTEM_FOLDER, user_folder()) if folder is not None]


def _contains_a_pack(folder: Path) -> bool:
    try:
        return any(name.endswith(".py") for name in os.listdir(folder))  # noqa: PTH208  # without a Path for each
    except (FileNotFoundError, NotADirectoryError):
        return False


def only_builtin() -> bool:
    """Whether the built-in pack is the only one."""
    if any(point.name != BUILTIN for point in entry_points(GROUP)):
        return False
    try:
        return not any(_contains_a_pack(folder) for folder in folders())
    except OSError:
        return False
