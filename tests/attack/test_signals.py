"""A signal at any moment leaves no process, no folder and no shared memory."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support import signals
from tests.support.command import TEST_RUN, clean_environment, left_running

TIMES = 3


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("argv", signals.COMMANDS, ids=" ".join)
def test_nothing_is_left(argv: tuple[str, ...], tmp_path: Path) -> None:
    draw = random.Random(" ".join(argv))
    for turn in range(TIMES):
        number, delay = signals.moments(draw, argv)
        folder = tmp_path / str(turn)
        folder.mkdir()
        ended = signals.attempt(argv, number, delay, folder)
        assert ended.left == [], (number.name, delay)


GUARDED = """
import subprocess, sys, time
from pathlib import Path
from dsdoctor import process
folder = Path(sys.argv[1])
folder.mkdir()
guard = process.Guard(folder)
if sys.argv[2] == "end":
    guard.end()
child = process.Child(["sh", "-c", "setsid sleep 600 & setsid sleep 600"])
print("ready", flush=True)
time.sleep(600)
"""


def _dsdoctor_killed(tmp_path: Path, word: str) -> list[str]:
    """What is left of a process that had started others when SIGKILL ended it."""
    env = clean_environment(tmp_path)
    child = subprocess.Popen(
        [sys.executable, "-c", GUARDED, str(tmp_path / "run"), word],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    child.kill()
    child.wait()
    child.stdout.close()
    end = time.monotonic() + 60.0
    while time.monotonic() < end:
        left = left_running(tmp_path)
        if len(left) == 0 if word == "keep" else len(left) >= 2:
            break
        time.sleep(0.1)
    if word == "keep":
        assert not (tmp_path / "run").exists()
    return left


def test_sigkill_leaves_neither_processes_nor_the_folder(tmp_path: Path) -> None:
    assert _dsdoctor_killed(tmp_path, "keep") == []


def test_without_the_guard_they_would_stay(tmp_path: Path) -> None:
    left = _dsdoctor_killed(tmp_path, "end")
    try:
        assert len(left) >= 2
    finally:
        for entry in Path("/proc").iterdir():
            mark = f"{TEST_RUN}={tmp_path}".encode()
            if entry.name.isdigit() and mark in _environment(entry):
                os.kill(int(entry.name), signal.SIGKILL)


def _environment(entry: Path) -> list[bytes]:
    try:
        return (entry / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


@pytest.mark.any_user
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_in_the_middle_of_an_import_ends_the_command(tmp_path: Path, name: str) -> None:
    """Modules that the end itself uses are there in part then."""
    script = f"""
import os, signal, sys, types
from dsdoctor import process
from dsdoctor.cli import main
from dsdoctor.process.marker import RUN_ID
folder = os.path.join(os.environ["TMPDIR"], f"dsdoctor-{{RUN_ID}}-1-x")
os.makedirs(folder + "/inside")
open(folder + "/inside/file", "w").close()
os.symlink("/", folder + "/inside/link")
def begin(*_words, **_more):
    for half in ("tempfile", "shutil"):
        sys.modules[half] = types.ModuleType(half)
    os.kill(os.getpid(), signal.{name})
main.group.main = begin
main.run([])
"""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    env = clean_environment(tmp_path, TMPDIR=str(temporary))
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, cwd=tmp_path, capture_output=True, check=False,
        timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (128 + signal.Signals[name], b"")
    assert list(temporary.iterdir()) == [], "a link in the folder is removed, not followed"
