"""What a user can do wrong with `fleet`: one clear line, status 2."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from dsdoctor import process
from dsdoctor.cli.main import run
from dsdoctor.fleet import fanout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("check", "--nodes"),
        ("check --slurm", "salloc"),
        ("check --nodes a --slurm", "pass exactly one of"),
        ("check --nodes gpu[1-", "gpu[001-512]"),
        ("check --nodes gpu[9-1]", "[001-037,041]"),
        ("check --nodes a --from reports", "contacts no nodes"),
        ("check --from empty", "*.json"),
        ("check --from nowhere", "*.json"),
        ("check --from garbage", "garbage/a.json"),
        ("check --hostfile nowhere", "cannot be read"),
        ("check --hostfile none", "slots=8"),
        ("check --hostfile bad", "line 2 is `h2 slots=x`"),
        ("check --hostfile twice", "each host once"),
        ("check --nodes a", "`ssh`, which the fan-out needs, is not on PATH"),
        ("check --nodes a --engine pdsh", "`pdsh` cannot be run"),
        ("check --nodes a --engine srun", "`srun` cannot be run"),
        ("diff nowhere empty", "expected a report or a folder of reports"),
        ("smoke", "--hostfile"),
        ("smoke --hostfile none", "lists no host"),
    ],
)
def test_misuse_is_one_line(
    words: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for folder in ("empty", "garbage"):
        (tmp_path / folder).mkdir()
    (tmp_path / "garbage" / "a.json").write_text("hello")
    (tmp_path / "garbage" / "b.txt").write_bytes(bytes(range(256)))
    (tmp_path / "garbage" / "c.json").write_bytes(b"")
    (tmp_path / "none").write_text("# nobody\n")
    (tmp_path / "bad").write_text("h1 slots=2\nh2 slots=x\n")
    (tmp_path / "twice").write_text("h1 slots=2\nh1 slots=2\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DSDOCTOR_PYTHON", sys.executable)
    assert run(["fleet", *words.split()]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1, error


NO_CONTROLLER = """\
ClusterName=x
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=1
AuthType=auth/none
NodeName=a NodeHostName=localhost CPUs=1
PartitionName=p Nodes=ALL Default=YES
MessageTimeout=2
"""


@pytest.mark.system
@pytest.mark.skipif(shutil.which("srun") is None, reason="needs Slurm (tests/system-deps.sh)")
@pytest.mark.parametrize(
    "config",
    [
        pytest.param(None, id="no configuration"),
        pytest.param(NO_CONTROLLER, id="a controller that does not answer"),
    ],
)
def test_srun_without_a_controller_is_misuse_not_a_silent_node(
    config: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DSDOCTOR_PYTHON", sys.executable)
    monkeypatch.delenv("SLURM_CONF", raising=False)
    if config is not None:
        (tmp_path / "slurm.conf").write_text(config)
        monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    assert run(["fleet", "check", "--nodes", "a", "--engine", "srun"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1, said.err
    assert said.err.startswith("dsdoctor: `srun` started nothing: ")
    assert ("contact slurm controller" if config else "configuration source") in said.err
    assert "--engine clustershell" in said.err


@pytest.mark.parametrize(
    ("stdout", "stderr", "status"),
    [
        # nodes that were reached: what they say is theirs
        pytest.param(
            b"",
            b"0: sh: python3: not found\nsrun: error: a: task 0: Exited with exit code 127\n",
            127,
            id="no Python on the node",
        ),
        pytest.param(
            b"",
            b"srun: error: a: task 0: Exited with exit code 127\n",
            127,
            id="a task that fails in silence",
        ),
        pytest.param(
            b"0: hello\n",
            b"srun: error: Timed out waiting for job step to complete\n",
            1,
            id="a job step that times out after output",
        ),
        pytest.param(
            b"", b"srun: warning: can't run 1 processes on 2 nodes\n", 0, id="a warning and success"
        ),
        pytest.param(b"", b"", 1, id="a failure without output"),
    ],
)
def test_srun_whose_tasks_fail_has_started_something(
    stdout: bytes, stderr: bytes, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = process.Result(argv=("srun",), returncode=status, stdout=stdout, stderr=stderr)
    monkeypatch.setattr(process, "run", lambda *_, **__: ended)
    answers = fanout.collect(fanout.Order(nodes=["a"], collector="", engine="srun"))
    assert answers["a"][0] is None
    assert answers["a"][1]
