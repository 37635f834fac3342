"""A scontrol that hangs, also one that ignores signals, turns no block into a pass."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dsdoctor.hook import gatelog
from tests.nvml import fakenvml, scenarios

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a shared library for Linux"),
]
#: Of the second run, which uses the verdict of the first one.
BUDGET = 10


def install(into: Path, run: Path, budget: int) -> Path:
    argv = [sys.executable, "-m", "dsdoctor", "hook", "install", "slurm", "--reason-from-prolog"]
    argv += ["--gpus", "all", "--budget", str(budget), "--into", str(into)]
    subprocess.run([*argv, "--run-folder", str(run)], check=True, capture_output=True, timeout=300)
    return into / "prolog.sh"


@pytest.mark.parametrize("first", ["", "trap '' TERM INT HUP\n"], ids=["hangs", "deaf"])
def test_a_scontrol_that_hangs_is_not_waited_for(tmp_path: Path, first: str) -> None:
    calls = tmp_path / "calls"
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(f'#!/bin/sh\n{first}echo "$1 $2" >>{calls}\nsleep 60 & wait\nsleep 60\n')
    scontrol.chmod(0o755)
    scenario = copy.deepcopy(scenarios.rtx_3090_x2_nvlink())
    scenario["fail"] = {"*@1": 15}  # NVML_ERROR_GPU_IS_LOST
    env = {"SLURMD_NODENAME": "n1", **fakenvml.environment(scenario, tmp_path)}
    env["PATH"] = "/usr/bin:/bin"
    run = tmp_path / "run"
    warm = install(tmp_path / "warm", run, 30)
    warm.write_text(re.sub(r"(?m)^export DSDOCTOR_SCONTROL=.*$", "", warm.read_text()))
    subprocess.run(
        [str(warm)],
        env={**env, "DSDOCTOR_SCONTROL": "/bin/true"},
        check=False,
        capture_output=True,
        timeout=300,
    )
    script = install(tmp_path / "into", run, BUDGET)
    text = re.sub(r"(?m)^(export DSDOCTOR_SCONTROL=).*$", rf"\1{scontrol}", script.read_text())
    script.write_text(text)
    done = subprocess.run(
        [str(script)],
        env={**env, "SLURM_JOB_ID": "7"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert calls.read_text().splitlines() == ["update nodename=n1", "update jobid=7"]
    end = gatelog.read(run)[-1]
    assert (end["job"], end["decision"], end["condition"]) == ("7", "block", "gpu-lost")
