"""Where the links of a checkpoint's folder may lead root."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dsdoctor
from tests.attack.conftest import Trap

SCRIPT = Path(dsdoctor.__file__).parent / "probes/children/checkpoint.py"


@pytest.mark.parametrize("how", ["folder", "above", "relative", "device"])
def test_a_checkpoint_does_not_lead_root_elsewhere(trap: Trap, how: str) -> None:
    """`CKPT -> DIR` and `above -> DIR/..`, where root alone may read `DIR/latest`."""
    private = trap.folder / "private" / "ckpt"
    private.mkdir(parents=True)
    latest = private / "latest"
    latest.write_text("root-hash")
    latest.chmod(0o600)
    link = trap.link("ckpt", {"relative": "../private/ckpt"}.get(how, private))
    given = link
    if how == "above":
        given = trap.link("way", private.parent) / "ckpt"
    elif how == "device":
        given = trap.home / "own"
        given.mkdir()
        (given / "latest").symlink_to("/dev/full")  # reads as zeros, without end
    argv = [sys.executable, "-I", str(SCRIPT)]

    def look(folder: Path) -> str:
        done = subprocess.run(
            [*argv, str(folder)], capture_output=True, text=True, check=False, timeout=500
        )
        assert done.returncode == 0, done.stderr
        return str(json.loads(done.stdout.split("\x1edsdoctor:")[1])["latest"] or "")

    assert look(given) == ""
    assert look(private) == "root-hash"
    os.lchown(link, 0, 0)
    if how in ("folder", "relative"):
        assert look(link) == "root-hash", "root's own link may lead there"
