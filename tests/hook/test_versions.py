"""Two versions of the gate on one node: they share the run folder while a cluster is upgraded."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.hook import gatelog, supervise
from dsdoctor.hook.request import Request
from dsdoctor.hook.rundir import RunFolder
from tests.nvml import fakenvml, scenarios

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a shared library for Linux"),
]
OLD = "0.0.9"


def install(tmp_path: Path, into: str = "into") -> Path:
    argv = [sys.executable, "-m", "dsdoctor", "hook", "install", "slurm", "--gpus", "all"]
    argv += ["--into", str(tmp_path / into), "--run-folder", str(tmp_path / "run")]
    subprocess.run([*argv, "--budget", "60"], check=True, capture_output=True, timeout=300)
    return tmp_path / into / "prolog.sh"


def run(tmp_path: Path, script: Path, job: str) -> Any:
    env = fakenvml.environment(scenarios.rtx_3090_x2_nvlink(), tmp_path)
    env |= {"PATH": "/usr/bin:/bin", "SLURM_JOB_ID": job, "SLURMD_NODENAME": "n1"}
    done = subprocess.run(
        [str(script)], env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((tmp_path / "run" / f"job.n1.{job}.json").read_text())


def test_a_verdict_of_another_version_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another version takes for a fault, or for healthy, is judged again."""
    script = install(tmp_path)
    assert not run(tmp_path, script, "1")["reused"]
    assert run(tmp_path, script, "2")["reused"]
    path = tmp_path / "run" / "node.json"
    node = json.loads(path.read_text())
    monkeypatch.setattr(supervise, "__version__", OLD)
    older = key(tmp_path)
    monkeypatch.undo()
    assert older != key(tmp_path)
    fault = {"id": "DSD601", "condition": "gpu-lost", "status": "fail", "confirmed": True}
    fault |= {"message": "x", "hint": "", "scope": "node", "family": "gpu"}
    path.write_text(json.dumps({**node, "key": older, "dsdoctor": OLD, "findings": [fault]}))
    assert not run(tmp_path, script, "3")["reused"]


def key(tmp_path: Path) -> str:
    """Of verdicts that this process would use."""
    folder = RunFolder(tmp_path / "other")
    return supervise.Supervisor(Request("slurm-prolog"), folder, {}, 0.0).key


def test_scripts_of_two_versions_share_one_log(tmp_path: Path) -> None:
    """Side by side, then the older environment is deleted: its script lets jobs pass."""
    new, old = install(tmp_path), install(tmp_path, "old")
    text = re.sub(r"\(dsdoctor [^)]+\)", f"(dsdoctor {OLD})", old.read_text())
    old.write_text(text)
    run(tmp_path, old, "1")
    run(tmp_path, new, "2")
    old.write_text(text.replace(sys.executable, "/nowhere/python"))
    gone = subprocess.run([str(old)], env={"PATH": "/bin"}, capture_output=True, check=False)
    assert gone.returncode == 0
    with (tmp_path / "run" / gatelog.NAME).open("a") as log:
        log.write("time=1 event=thought hook=new-kind node=n1 mood=good\n")
    rows = [row for row in gatelog.read(tmp_path / "run") if row["event"] == "end"]
    assert [row.get("cause", "") for row in rows] == ["", "", "no-interpreter"]
    assert install(tmp_path) == new, "installing again replaces the script at once"
    assert not list(new.parent.glob("*.edited-*"))
