"""Programs on PATH that another account has put there, for what root starts by name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dsdoctor.host.account import own_tool
from dsdoctor.run import hang, requeue, scheduler
from dsdoctor.smoke import evidence
from tests.attack.conftest import Trap

TOOLS = ("scontrol", "sacct", "squeue", "py-spy")


@pytest.fixture(name="ran")
def _ran(trap: Trap, monkeypatch: pytest.MonkeyPatch) -> Path:
    """PATH is another account's folder of programs, each of which leaves this file."""
    ran = trap.folder / "ran"
    for name in TOOLS:
        text = f"#!/bin/sh\necho {name} >>{ran}\necho JobId=7 JobState=COMPLETED\n"
        trap.file(f"bin/{name}", text, 0o755)
    monkeypatch.setenv("PATH", f"{trap.home}/bin")
    return ran


def test_root_asks_none_of_them(ran: Path, trap: Trap, tmp_path: Path) -> None:
    assert scheduler.ask(tmp_path, "7") == ""
    assert scheduler.find_job(tmp_path, os.getpid(), 0.0, 1.0) == ""
    assert requeue.job_of({"SLURM_JOB_ID": "7"}) is None
    hang.stacks(tmp_path / "stacks", {0: os.getpid()})
    evidence.stacks(tmp_path, {}, str(trap.home / "bin" / "python"))
    assert not ran.exists(), ran.read_text()


@pytest.mark.usefixtures("ran")
def test_the_next_one_on_path_is_taken(trap: Trap) -> None:
    assert own_tool("scontrol", f"{trap.home}/bin") is None
    mine = trap.folder / "mine"
    mine.mkdir()
    (mine / "scontrol").write_text("#!/bin/sh\n")
    (mine / "scontrol").chmod(0o755)
    assert own_tool("scontrol", f"{trap.home}/bin:{mine}") == str(mine / "scontrol")
    trap.give(mine / "scontrol")
    assert own_tool("scontrol", f"{trap.home}/bin:{mine}") is None
