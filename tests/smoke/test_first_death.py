"""Which rank died first, where one look finds several of them dead."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dsdoctor import packs
from dsdoctor.model.smoke import Event
from dsdoctor.smoke import request, verdict
from dsdoctor.smoke.attempt import Attempt
from dsdoctor.smoke.track import Tracker
from tests.smoke.test_plan import seen

WORKER = Path(verdict.__file__).parent / "worker"
#: A rank after its first lines of output; it waits as in a collective, outside Python's own code.
RANK = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from dsdsmoke_report import take_output
ready = os.dup(1)
kept = take_output(sys.argv[2], int(sys.argv[3]))
os.write(ready, b".")
time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_rank_that_is_asked_to_end_is_told_from_one_that_is_killed(
    tmp_path: Path, number: signal.Signals
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RANK, str(WORKER), str(tmp_path), "0"], stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.read(1) == b"."
        child.send_signal(number)
        # the signal still ends it, as it would without the record
        assert child.wait(200) == -number
    tracker = Tracker(tmp_path, 1)
    tracker.note_death(tracker.ranks[0], time.monotonic())
    assert tracker.ranks[0].terminated == (number == signal.SIGTERM)


@pytest.mark.parametrize("asked", [0, 1])
def test_the_rank_that_was_not_asked_to_end_died_first(tmp_path: Path, asked: int) -> None:
    made = Attempt(
        plan=request.plan(request.SmokeOptions(), seen), argv=(), env={},
        tracker=Tracker(tmp_path, 2), folder=tmp_path, reason="rank-died", returncode=247,
    )  # fmt: skip
    (tmp_path / f"rank-{asked}.sigterm").write_text("Current thread 0x1:\n")
    for progress in made.tracker.ranks:
        progress.events.append(
            Event(rank=progress.rank, phase="engine-init", state="begin", time=time.time())
        )
        made.tracker.note_death(progress, 7.0)
    (cause,) = verdict.report(made, packs.load(builtin_only=True)).causes
    assert cause.message.startswith(f"rank {1 - asked} was killed in engine-init with no output")


def test_ranks_that_were_all_asked_to_end_were_not_killed(tmp_path: Path) -> None:
    made = Attempt(
        plan=request.plan(request.SmokeOptions(), seen), argv=(), env={},
        tracker=Tracker(tmp_path, 2), folder=tmp_path, reason="rank-died", returncode=143,
    )  # fmt: skip
    for progress in made.tracker.ranks:
        (tmp_path / f"rank-{progress.rank}.sigterm").write_text("Current thread 0x1:\n")
        made.tracker.note_death(progress, 7.0)
    (cause,) = verdict.report(made, packs.load(builtin_only=True)).causes
    assert "rank 0 was ended by SIGTERM" in cause.message


def test_a_launcher_that_goes_on_has_no_status(tmp_path: Path) -> None:
    made = Attempt(
        plan=request.plan(request.SmokeOptions(), seen), argv=(), env={},
        tracker=Tracker(tmp_path, 2), folder=tmp_path, reason="rank-died",
    )  # fmt: skip
    made.tracker.note_death(made.tracker.ranks[1], 7.0)
    (cause,) = verdict.report(made, packs.load(builtin_only=True)).causes
    assert cause.message.endswith("the launcher has not ended")


@pytest.mark.parametrize(
    ("line", "condition"),
    [
        pytest.param(
            "['/home/ann/memory-tests/bin/python3', 'rank.py'] exits with return code = -9",
            "rank-killed",
            id="a path that contains the word memory",
        ),
        pytest.param(
            "Memory cgroup out of memory: Killed process 25 (python) total-vm:1kB",
            "host-oom-killed",
            id="a message of the kernel",
        ),
    ],
)
def test_only_a_message_about_memory_makes_it_the_cause(
    tmp_path: Path, line: str, condition: str
) -> None:
    (tmp_path / "launcher.log").write_text(f"{line}\n")
    made = Attempt(
        plan=request.plan(request.SmokeOptions(), seen), argv=(), env={},
        tracker=Tracker(tmp_path, 2), folder=tmp_path, reason="rank-died", returncode=247,
    )  # fmt: skip
    made.tracker.note_death(made.tracker.ranks[0], 7.0)
    (cause,) = verdict.report(made, packs.load(builtin_only=True)).causes
    assert cause.condition == condition
