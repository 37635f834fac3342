"""Where packs are found; imports nothing heavy, so that a command can ask whether there are any."""

from __future__ import annotations

from pathlib import Path

import platformdirs

from dsdoctor.entry_points import entry_points

GROUP = "dsdoctor.packs"
#: The name of the pack that comes with dsdoctor.
BUILTIN = "builtin"
SYSTEM_FOLDER = Path("/etc/dsdoctor/checks.d")


def user_folder() -> Path:
    """The checks.d folder of the user."""
    return Path(platformdirs.user_config_dir("dsdoctor")) / "checks.d"


def only_builtin() -> bool:
    """Whether no pack is installed but the built-in one."""
    if any(point.name != BUILTIN for point in entry_points(GROUP)):
        return False
    try:
        return not any(
            True for folder in (SYSTEM_FOLDER, user_folder()) for _ in folder.glob("*.py")
        )
    except OSError:
        return False
