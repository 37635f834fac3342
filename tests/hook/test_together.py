"""Prolog and task prolog of one job: what one has waited for in vain, the other does not wait for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dsdoctor.hook import gatelog, install, limits
from tests.support.command import TEST_RUN

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Slurm and /proc")

#: Writes a verdict of the run that asks for it, as dsdoctor does.
VERDICT = (
    "while [ $# -gt 0 ]; do case $1 in --json) f=$2;; --token) t=$2;; esac; shift; done\n"
    'printf \'{"decision": "pass", "verdict": "%s", "cause": "%s", "token": "%s"}\\n\' '
    '"$v" "$c" "$t" >"$f"\n'
)


class Start:
    """The scripts of `hook install slurm` around a stand-in interpreter."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "python"
        self.run = folder / "run"

    def interpreter(self, body: str) -> None:
        self.python.write_text(f'#!/bin/sh\necho "$4 $5" >>{self.folder}/started\n{body}\n')
        self.python.chmod(0o755)

    def script(self, name: str, job: str = "7", node: str = "n1", *, budget: float = 1.0) -> str:
        options = install.InstallOptions(
            into=self.folder,
            python=str(self.python),
            budget=budget,
            run_folder=str(self.run),
            scontrol="/nowhere/a tool",
            slurm_conf="/nowhere/a cluster/slurm.conf",
        )
        text, _ = install.plan("slurm", options).files[self.folder / name]
        done = subprocess.run(
            ["/bin/sh", "-c", text],
            env={"SLURM_JOB_ID": job, "SLURMD_NODENAME": node, TEST_RUN: str(self.folder)},
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
            cwd="/",
        )
        assert done.returncode == 0
        assert done.stderr == ""
        return done.stdout

    @property
    def started(self) -> list[str]:
        """The hooks that were started."""
        path = self.folder / "started"
        return re.findall("(?m)^hook (.*)$", path.read_text()) if path.exists() else []


@pytest.fixture
def start(tmp_path: Path) -> Start:
    return Start(tmp_path)


PROLOG, TASK = "slurm-prolog", "slurm-task-prolog"


def test_an_interpreter_that_hangs_is_waited_for_once(start: Start) -> None:
    start.interpreter("exec sleep 100")
    start.script("prolog.sh")
    assert start.script("task-prolog.sh") == "export DSDOCTOR_VERDICT=unknown\n"
    assert start.started == [PROLOG]


@pytest.mark.parametrize("cause", ["timeout", "nvml-slow", "hung"])
def test_a_driver_that_hangs_is_waited_for_once(start: Start, cause: str) -> None:
    start.interpreter(f"v=unknown c={cause}\n{VERDICT}")
    start.script("prolog.sh")
    assert start.script("task-prolog.sh") == "export DSDOCTOR_VERDICT=unknown\n"
    assert start.started == [PROLOG]


@pytest.mark.parametrize("cause", ["", "crash", "usage"])
def test_every_other_prolog_keeps_no_task_from_its_own(start: Start, cause: str) -> None:
    start.interpreter(f"v=unknown c={cause}\n{VERDICT}")
    start.script("prolog.sh")
    start.script("task-prolog.sh")
    assert start.started == [PROLOG, TASK]


@pytest.mark.parametrize(("job", "node"), [("70", "n1"), ("7", "n10")])
def test_nor_does_that_of_another_job_or_node(start: Start, job: str, node: str) -> None:
    start.interpreter(f"v=unknown c=timeout\n{VERDICT}")
    start.script("prolog.sh", job, node)
    start.script("task-prolog.sh")
    assert start.started == [PROLOG, TASK]


def test_a_later_step_is_judged(start: Start) -> None:
    start.interpreter(f"v=unknown c=timeout\n{VERDICT}")
    start.script("prolog.sh")
    log = start.run / gatelog.NAME
    log.write_text(
        re.sub("time=([0-9]+)", lambda found: f"time={int(found[1]) - 90}", log.read_text())
    )
    start.script("task-prolog.sh")
    assert start.started == [PROLOG, TASK]


@pytest.mark.parametrize(
    ("took", "left"), [("0.34", 5.0), ("2.00", 5.0), ("3.09", 3.91), ("10.00", 0.8)]
)
def test_a_prolog_that_took_long_leaves_its_task_prolog_less(
    start: Start, took: str, left: float
) -> None:
    """Together they take no more than 1.4 budgets; a task prolog has its clock set forward.

    An interpreter that has 0.1 s is ended before its first line where other programs are first.
    """
    start.run.mkdir()
    row = f"time={time.time():.0f} event=end hook=slurm-prolog node=n1 job=7 run=1 decision=pass"
    (start.run / gatelog.NAME).write_text(f"{row} cause= seconds={took} noted=\n")
    start.interpreter(f"echo ${limits.VARIABLE} >{start.folder}/ends\nv=healthy c=\n{VERDICT}")
    told = start.folder / "ends"
    for _ in range(100):
        begun = uptime()
        start.script("task-prolog.sh", budget=5.0)
        if told.exists() and told.read_text():
            break
    ends = float(told.read_text())
    least = max(0.1, left - 0.7)
    assert begun + least - 0.02 <= ends <= uptime() + least
    assert set(start.started) == {TASK}


def uptime() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])


@pytest.mark.parametrize("said", ["seconds=x", "seconds=3.7.1", "seconds=3", "time= seconds=9.00"])
def test_a_line_that_makes_no_sense_changes_nothing(start: Start, said: str) -> None:
    start.run.mkdir()
    row = f"time={time.time():.0f} event=end hook=slurm-prolog node=n1 job=7 run=1 cause=timeout "
    row = row.replace(f"time={time.time():.0f}", "time=") if said.startswith("time=") else row
    (start.run / gatelog.NAME).write_text(f"{row}{said} noted=\n")
    start.interpreter(f"v=healthy c=\n{VERDICT}")
    start.script("task-prolog.sh")
    assert start.started == [TASK]


def test_what_scontrol_needs_may_contain_spaces(start: Start) -> None:
    start.interpreter(f'echo "$DSDOCTOR_SCONTROL, $SLURM_CONF" >{start.folder}/seen')
    start.script("prolog.sh")
    seen = (start.folder / "seen").read_text()
    assert seen == "/nowhere/a tool, /nowhere/a cluster/slurm.conf\n"


@pytest.mark.skipif(os.name != "posix", reason="run folders")
def test_what_killed_hooks_have_left_is_removed(tmp_path: Path) -> None:
    from dsdoctor.hook.rundir import STUCK_SECONDS, RunFolder

    folder = RunFolder(tmp_path / "run")
    for name, age in {
        "own.12.json": 2.0,
        "worker.12.log": 2.0,
        "own.13.json": 0.5,
        "worker.node.log": 2.0,
        "job.n1.7.json": 2.0,
    }.items():
        path = folder.path / name
        path.touch()
        moment = path.stat().st_mtime - age * STUCK_SECONDS
        os.utime(path, (moment, moment))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "dsdoctor",
            "hook",
            "slurm-epilog",
            "--run-folder",
            str(folder.path),
        ],
        env={"PATH": os.environ["PATH"], "SLURM_JOB_ID": "8", "SLURMD_NODENAME": "n1"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        cwd="/",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    left = {path.name for path in folder.path.iterdir()}
    assert {"own.13.json", "worker.node.log", "job.n1.7.json"} <= left
    assert not left & {"own.12.json", "worker.12.log"}
