"""Folders of earlier runs: those of the dead go, those of the living stay, whatever their number."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dsdoctor.smoke import launcher
from dsdoctor.smoke.launcher import remove_stale

#: Above every `kernel.pid_max`: no process here has it, as none has that of another container.
ELSEWHERE = 9_999_999
HOLD = """
import fcntl, sys, time
file = open(sys.argv[1], "r+")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = tmp_path / f"{launcher.PREFIX}{ELSEWHERE}-abc"
    made.mkdir()
    (made / "job.json").write_text("{}")
    return made


@pytest.mark.skipif(sys.platform == "win32", reason="locks of POSIX")
def test_a_run_of_another_container_that_shares_the_folder_is_left_alone(folder: Path) -> None:
    (folder / "alive").touch()
    held = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder / "alive")], stdout=subprocess.PIPE, text=True
    )
    assert held.stdout is not None
    try:
        assert held.stdout.readline() == "held\n"
        remove_stale()
        assert (folder / "job.json").exists()
    finally:
        held.kill()
        held.communicate()
    remove_stale()
    assert not folder.exists()


def test_a_run_that_was_killed_is_swept(folder: Path) -> None:
    (folder / "alive").touch()
    remove_stale()
    assert not folder.exists()


def test_a_folder_that_is_being_made_is_left_alone_for_a_while(folder: Path) -> None:
    remove_stale()
    assert folder.exists()
    os.utime(folder, (time.time() - 60,) * 2)
    remove_stale()
    assert not folder.exists()


def test_a_run_of_this_machine_is_left_alone(folder: Path) -> None:
    mine = folder.rename(folder.with_name(f"{launcher.PREFIX}{os.getpid()}-abc"))
    (mine / "alive").touch()
    remove_stale()
    assert mine.exists()
