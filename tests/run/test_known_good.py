"""`check`, `smoke` and `run` share one memory of what the machine was like when a job worked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dsdoctor.machines import known_good
from dsdoctor.model.facts.machine import Environment, OsInfo
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.snapshot import Snapshot
from tests.run.support import environment, record, run


def snapshot(
    *, variables: dict[str, str] | None = None, config: dict[str, object] | None = None
) -> Snapshot:
    made = Snapshot()
    made.put(RunNeeds(config=config))
    made.put(OsInfo(system="Linux", machine="x86_64", hostname="n1", release="6.1"))
    if variables is not None:
        made.put(Environment(variables=variables))
    return made


def test_what_one_side_did_not_read_has_not_changed() -> None:
    full = snapshot(variables={"NCCL_DEBUG": "INFO"}, config={"bf16": {"enabled": True}})
    bare = snapshot()
    assert known_good.changes(full, bare) == []
    assert known_good.changes(bare, full) == []


def test_variables_and_settings_that_came_or_went_are_changes() -> None:
    before = snapshot(variables={"NCCL_DEBUG": "INFO", "SLURM_JOB_ID": "1"}, config={"a": 1})
    now = snapshot(variables={"NCCL_P2P_DISABLE": "1", "SLURM_JOB_ID": "2"}, config={"a": 2})
    assert known_good.changes(before, now) == [
        "config `a`: 1 → 2",
        "variable `NCCL_DEBUG`: INFO → absent",
        "variable `NCCL_P2P_DISABLE`: absent → 1",
    ]


def test_of_a_search_path_the_folders_that_came_and_went_are_named() -> None:
    many = ":".join(f"/opt/modules/tool-{number}/bin" for number in range(9))
    before, now = snapshot(variables={"PATH": many}), snapshot(variables={"PATH": f"/v/bin:{many}"})
    assert known_good.changes(before, now) == ["variable `PATH`: added `/v/bin`"]
    assert known_good.changes(now, before) == ["variable `PATH`: removed `/v/bin`"]


@pytest.mark.skipif(sys.platform != "linux", reason="watching needs Linux")
def test_a_failing_check_and_a_failing_run_say_what_changed_since_a_run_worked(
    tmp_path: Path,
) -> None:
    env = environment(tmp_path)
    check = [sys.executable, "-m", "dsdoctor", "check", "--quick", "--"]
    broken = [*check, "deepspeed", str(tmp_path / "absent.py")]
    first = subprocess.run(broken, env=env, capture_output=True, text=True, check=False)
    assert first.returncode == 1
    assert "changed since" not in first.stdout  # nothing has worked here yet
    assert run(tmp_path, "--", "true").returncode == 0
    env["NCCL_DEBUG"] = "WARN"
    said = "changed since a job last worked here: variable `NCCL_DEBUG`: absent → WARN"
    done = subprocess.run(broken, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert said in " ".join(done.stdout.split())
    died = subprocess.run(
        [sys.executable, "-m", "dsdoctor", "run", "--runs-dir", str(tmp_path / "other"), "--",
         "sh", "-c", "exit 3"],
        env={**env, "DSDOCTOR_RUNS": str(tmp_path / "other")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert died.returncode == 3
    assert said in died.stderr
    assert record(tmp_path)["status"] == 0
