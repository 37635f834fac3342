"""Where packs are found; imports nothing heavy, so that a command can ask whether there are any."""

from __future__ import annotations

from pathlib import Path

from dsdoctor import files
from dsdoctor.entry_points import entry_points

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


def only_builtin() -> bool:
    """Whether no pack is installed but the built-in one."""
    if any(point.name != BUILTIN for point in entry_points(GROUP)):
        return False
    try:
        return not any(True for folder in folders() for _ in folder.glob("*.py"))
    except OSError:
        return False
