"""What is shown while a run goes on, on a terminal and in a log."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dsdoctor.cli.phases import PhaseLines

LONG = "rank 0 in building fused_adam for compute capability 9.0; the first build takes minutes"
SHOW = f"""
import time
from dsdoctor.cli.phases import PhaseBars

bars = PhaseBars(enabled=True)
bars.update("ops", {LONG!r})
time.sleep(1)
bars.close()
"""


def on_a_terminal(columns: int, code: str) -> str:
    ours, theirs = pty.openpty()
    env = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=theirs, stdout=theirs, stderr=theirs, env=env
    ):
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 4096):
                seen += piece
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())


@pytest.mark.parametrize("columns", [60, 80])
def test_clock_and_note_are_whole(columns: int) -> None:
    told = re.split(r"(?=ops \S+ 0:)", on_a_terminal(columns, SHOW))
    frames = [frame for frame in told if "rank 0" in frame]
    assert frames
    for frame in frames:
        rows = frame.splitlines()
        assert re.match(r"ops \S+ 0:0\d:\d\d rank 0 in building", rows[0]), frame
        assert all(len(row.rstrip()) <= columns for row in rows), frame
    words = re.sub(r"ops \S+ \S+", "", frames[-1]).split()
    assert words[: len(LONG.split())] == LONG.split()


def test_a_log_is_told_where_the_run_is_and_for_how_long() -> None:
    lines: list[str] = []
    two = threading.Event()

    def write(line: str) -> None:
        lines.append(line)
        if len(lines) == 2:
            two.set()

    shown = PhaseLines(every=0.02, write=write)
    shown.update("ops", "rank 0 builds fused_adam")
    assert two.wait(30)
    shown.close()
    written = len(lines)
    assert re.fullmatch(r"dsdoctor: ops: rank 0 builds fused_adam \(\d+ s\)\n", lines[-1])
    assert not threading.Event().wait(0.1)
    assert len(lines) == written


def test_a_short_run_writes_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("w") as stream:
        shown = PhaseLines(write=stream.write)
        shown.update("steps", "step 1 of 3", 0.3)
        shown.close()
    assert log.read_text() == ""


def test_a_reader_that_is_gone_ends_no_run() -> None:
    tried = threading.Event()

    def write(line: str) -> None:
        tried.set()
        raise BrokenPipeError

    shown = PhaseLines(every=0.02, write=write)
    assert tried.wait(30)
    shown.update("steps")
    shown.close()
