"""What Slurm says of a job that has ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsdoctor.run.ending import ask_scheduler

SCONTROL = """#!/bin/sh
cd {folder}
echo asked >>asked
[ "$(wc -l <asked)" -gt 2 ] && state=CANCELLED || state=COMPLETING
echo "JobId=$3 JobName=train"
echo "   JobState=$state Reason=None"
"""


def test_a_state_that_hides_how_the_job_ended_is_waited_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "scontrol"
    tool.write_text(SCONTROL.format(folder=tmp_path))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    ask_scheduler(tmp_path, {"SLURM_JOB_ID": "7"})
    assert "JobState=CANCELLED" in (tmp_path / "scheduler.log").read_text()
    assert (tmp_path / "asked").read_text().count("asked") == 3
