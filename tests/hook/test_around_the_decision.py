"""The safeguards around a decision, one test each: what fails must not become a verdict."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dsdoctor import files
from dsdoctor.errors import UsageError
from dsdoctor.hook import entry, gatelog, health, outputs
from dsdoctor.hook.decide import Decision, Fault
from dsdoctor.hook.request import Request
from dsdoctor.hook.rundir import RunFolder, RunFolderError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="schedulers")

LOST = Fault("DSD601", "gpu-lost", "GPU 1\x1b[31m is lost\nand gone", "reset it")
BLOCK = Decision(block=True, verdict="faulty", faults=(LOST,))
PASS = Decision(verdict="healthy")
UNSURE = Decision(cause="timeout", detail="late")


class Gate:
    """A hook whose decision is given, and what it said and did."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = RunFolder(folder / "run")
        self.logged: list[str] = []
        self.heard: list[bool] = []
        self.patch = monkeypatch
        monkeypatch.setattr(entry, "_log", self.logged.append)
        monkeypatch.setattr(entry, "_handle_signals", lambda: self.heard.append(True))
        monkeypatch.setattr(entry, "KILL_SWITCH", folder / "absent")
        monkeypatch.setattr(entry, "_decided", [])
        monkeypatch.setattr(health, "call", self._called)
        self.called: list[tuple[Any, ...]] = []

    def _called(self, *words: Any, **_: Any) -> None:
        self.called.append(words)

    def decides(self, decision: Decision) -> None:
        known: dict[str, Any] = {"gpus": {}, "uid": None}
        self.patch.setattr(
            entry, "_decide", lambda request, *_: (decision, self.folder, request, known)
        )

    def run(
        self, kind: str, decision: Decision, env: dict[str, str] | None = None, **more: Any
    ) -> int:
        self.decides(decision)
        given = {"SLURMD_NODENAME": "n1", "SLURM_JOB_ID": "7"} if env is None else env
        return entry.run(Request(kind, **more), given)


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(tmp_path, monkeypatch)


# ---- no failure of ours is a verdict -----------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "status"),
    [
        (["npd"], 2),
        (["nagios"], 3),
        (["slurm-prolog"], 0),
        (["slurm-epilog", "--budget", "4"], 0),
        (["k8s"], 0),
        (["pbs-prologue"], 0),
        (["slurm-prolog", "--fail-closed"], 1),
        (["pbs-prologue", "--fail-closed"], 2),
        # the script of `hook install` decides, by its own --fail-closed
        (["slurm-prolog", "--token", "t"], 2),
        (["install", "slurm"], 2),
        ([], 2),
    ],
)
@pytest.mark.parametrize("where", ["hook", "click"])
def test_a_crash_is_no_verdict(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    argv: list[str], status: int, where: str,
) -> None:  # fmt: skip
    def broken(*_: object) -> int:
        raise ArithmeticError("a bug")

    monkeypatch.setattr(entry, "fast", broken if where == "hook" else lambda _: None)
    assert entry.main(argv, broken) == status
    assert "cause=crash ArithmeticError: a bug" in gate.logged[0]
    assert "inconclusive (crash)" in capsys.readouterr().out


def test_a_status_of_click_is_no_verdict_unless_a_verdict_was_given(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry, "fast", lambda _: None)
    assert entry.main(["nagios"], lambda: 1) == 3
    assert entry.main(["npd"], lambda: 1) == 2
    faulty = Decision(verdict="faulty", faults=(LOST,))
    assert entry.main(["npd"], lambda: gate.run("npd", faulty)) == 1
    assert entry.main(["install"], lambda: 0) == 0


@pytest.mark.parametrize(
    ("raised", "cause"),
    [
        pytest.param(RunFolderError("no"), "run-folder", id="run folder"),
        pytest.param(UsageError("no"), "usage", id="usage"),
        pytest.param(RuntimeError("no"), "crash", id="crash"),
        pytest.param(RecursionError("no"), "crash", id="endless recursion"),
    ],
)
def test_what_goes_wrong_in_deciding_is_named_and_passes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, raised: Exception, cause: str
) -> None:
    def broken(*_: object) -> None:
        raise raised

    monkeypatch.setattr(entry, "why_not_this", lambda _: "")
    monkeypatch.setattr(entry, "Supervisor", broken)
    asked = Request("slurm-prolog", run_folder=str(tmp_path / "run"))
    found = entry._decide(asked, {}, 0.0)[0]
    assert (found.cause, found.block) == (cause, False)
    closed = Request("slurm-prolog", run_folder=str(tmp_path / "run"), fail_closed=True)
    assert entry._decide(closed, {}, 0.0)[0].block


def test_root_does_not_judge_with_an_interpreter_of_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[object] = []

    def why(owners: tuple[int, ...]) -> str:
        asked.append(owners)
        return "it belongs to ada"

    monkeypatch.setattr(entry, "why_not_this", why)
    monkeypatch.setattr(entry, "Supervisor", None)
    request = Request("slurm-prolog", run_folder=str(tmp_path / "run"), trust_owner=(7,))
    monkeypatch.setattr(entry, "is_root", lambda: True)
    found = entry._decide(request, {}, 0.0)[0]
    assert (found.cause, found.block, asked) == ("untrusted-interpreter", False, [(7,)])
    monkeypatch.setattr(entry, "is_root", lambda: False)
    assert entry._decide(request, {}, 0.0)[0].cause == "crash", "the supervisor was asked"


@pytest.mark.parametrize(
    ("uid", "number"),
    [
        pytest.param("9" * 5000, None, id="5,000 digits"),
        pytest.param("7x", None, id="a letter among digits"),
        pytest.param("", None, id="empty"),
        pytest.param("1000", 1000, id="a user id"),
    ],
)
def test_a_uid_that_is_none_ends_nothing(uid: str, number: int | None) -> None:
    assert entry._notes_for_later({"SLURM_JOB_UID": uid}, None)["uid"] == number


def test_a_verdict_that_cannot_be_written_blocks_nothing(gate: Gate) -> None:
    assert gate.run("slurm-prolog", BLOCK, json="/proc/none/verdict") == 0
    assert any("cause=verdict-unwritten" in line for line in gate.logged)
    assert gate.run("slurm-prolog", BLOCK) == 1


class _Closed:
    def write(self, _text: str) -> None:
        raise ValueError("I/O operation on closed file")


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(_Closed(), id="closed"),
        pytest.param(None, id="none at all"),
        pytest.param(SimpleNamespace(write=len), id="an object that cannot flush"),
    ],
)
def test_a_stdout_that_is_gone_is_replaced(monkeypatch: pytest.MonkeyPatch, stream: object) -> None:
    """Python flushes it once more when it ends, and would end with a status of its own."""
    monkeypatch.setattr(sys, "stdout", stream)
    entry._print("a line")
    replaced: Any = sys.stdout
    monkeypatch.undo()
    replaced.flush()


def test_the_switch_lets_pass_and_asks_nothing(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(entry, "KILL_SWITCH", tmp_path)
    statuses = [gate.run(kind, BLOCK) for kind in ("slurm-prolog", "k8s", "npd", "nagios")]
    assert statuses == [0, 0, 2, 3]
    assert not list(gate.folder.path.iterdir())


def test_a_hook_hears_signals_before_it_starts_anything(gate: Gate) -> None:
    gate.run("npd", PASS)
    assert gate.heard == [True]


def test_kinds_that_block_nothing_end_with_nothing(gate: Gate) -> None:
    assert gate.run("slurm-task-prolog", BLOCK) == 0
    assert gate.run("slurm-task-prolog", BLOCK, enforce=True) == 1


# ---- what is noted -----------------------------------------------------------------------------


def test_only_what_passes_unjudged_is_counted(gate: Gate) -> None:
    gate.run("slurm-prolog", UNSURE)
    gate.run("slurm-prolog", Decision(block=True, cause="timeout"))
    gate.run("slurm-prolog", PASS)
    assert gate.folder.counts() == {"timeout": 1}


def test_the_log_of_the_gate_is_written_once_and_kept_short(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    rotated: list[Path] = []
    monkeypatch.setattr(gatelog, "rotate", rotated.append)
    gate.run("slurm-prolog", PASS, token="t")
    assert gatelog.read(gate.folder.path) == [], "the script of `hook install` writes it"
    gate.run("slurm-prolog", PASS)
    assert [row["event"] for row in gatelog.read(gate.folder.path)] == ["end"]
    assert rotated == [gate.folder.path] * 2


@pytest.mark.parametrize(
    "decision", [pytest.param(BLOCK, id="blocked"), pytest.param(PASS, id="passed")]
)
def test_a_job_and_a_drain_are_noted_for_those_that_follow(gate: Gate, decision: Decision) -> None:
    def names() -> list[str]:
        found = {path.name for path in gate.folder.path.iterdir()}
        return sorted(name for name in found if name.startswith(("job.", "blocked.")))

    drained = ["blocked.n1.json"] * decision.block
    for kind in ("npd", "pbs-prologue", "lsf-pre-exec", "k8s"):
        gate.run(kind, decision)
        assert names() == [], kind
    gate.run("slurm-prolog", decision)
    assert names() == [*drained, "job.n1.7.json"]
    gate.run("slurm-epilog", decision)
    assert names() == drained


def test_slurm_is_told_only_where_it_was_asked_for_and_a_job_is_blocked(gate: Gate) -> None:
    for kind, decision in (
        ("slurm-prolog", PASS),
        ("lsf-pre-exec", BLOCK),
        ("slurm-prolog", UNSURE),
    ):
        gate.run(kind, decision, reason_from_prolog=True, job_comment=True)
    gate.run("slurm-prolog", BLOCK)
    assert gate.called == []
    gate.run("slurm-prolog", BLOCK, reason_from_prolog=True, job_comment=True)
    words = [" ".join(call[2]) for call in gate.called]
    assert len(words) == 2
    assert words[0].startswith("update nodename=n1 state=drain reason=dsdoctor: DSD601")
    assert words[1].startswith("update jobid=7 admincomment=dsdoctor: n1:")
    assert "\x1b" not in "".join(words)


def test_a_scontrol_that_is_slow_gets_what_is_left_of_the_time(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []
    monkeypatch.setattr(health, "call", lambda *_, timeout: given.append(timeout))
    monkeypatch.setattr(entry, "process_age", lambda: 1000.0)
    gate.run("slurm-prolog", BLOCK, reason_from_prolog=True, job_comment=True)
    assert given == [0.1, 0.1]


@pytest.mark.parametrize(
    ("env", "asked"),
    [
        ({"SLURM_RESTART_COUNT": "1", "SLURM_JOB_ID": "7"}, 1),
        ({"SLURM_RESTART_COUNT": "1", "SLURM_JOB_ID": "7", "SLURM_NODEID": "0"}, 1),
        ({"SLURM_RESTART_COUNT": "0", "SLURM_JOB_ID": "7"}, 0),
        ({"SLURM_JOB_ID": "7"}, 0),
        ({"SLURM_RESTART_COUNT": "1", "SLURM_JOB_ID": "7", "SLURM_NODEID": "1"}, 0),
        ({"SLURM_RESTART_COUNT": "1"}, 0),
    ],
)
def test_only_the_first_node_of_a_requeued_job_asks_why(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    env: dict[str, str], asked: int,
) -> None:  # fmt: skip
    jobs: list[str] = []

    def told(job: str, _seconds: float) -> str:
        jobs.append(job)
        return "n1\nexport LD_PRELOAD=/x\x1b[2J"

    monkeypatch.setattr(health, "comment_of_job", told)
    gate.run("slurm-task-prolog", PASS, env)
    assert len(jobs) == asked
    # slurmstepd obeys each line of this output
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["print"] * asked + ["export"]
    assert "\x1b" not in "".join(lines)


def test_words_of_others_stay_on_their_line(gate: Gate, capsys: pytest.CaptureFixture[str]) -> None:
    problem = "`x\x1b]52;c;aGk=\x07\u202e\u2028` in `[hook]`\nhook=npd decision=block"
    gate.run("slurm-prolog", BLOCK, problems=(problem,))
    text = capsys.readouterr().out + "".join(gate.logged)
    assert not any(character in text for character in "\x1b\x07\u202e\u2028")
    assert not any("\n" in line for line in gate.logged)
    assert gate.logged[-1].startswith("hook=slurm-prolog configuration: ")


# ---- files -------------------------------------------------------------------------------------


def test_files_that_cannot_be_written_end_nothing(gate: Gate) -> None:
    assert gate.run("npd", PASS, textfile="/proc/none/x") == 0
    assert any("`--textfile /proc/none/x`: " in line for line in gate.logged)
    assert gate.run("k8s", PASS, termination_log="/proc/none/x") == 0


def test_files_for_a_monitor_are_strict_and_no_device_is_made(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    written: list[tuple[str, dict[str, Any]]] = []
    real = files.write

    def write(path: Any, data: Any, **how: Any) -> None:
        written.append((str(path), how))
        if str(path).startswith(str(tmp_path)):
            real(path, data, **how)

    monkeypatch.setattr(files, "write", write)
    monkeypatch.setattr(outputs, "termination", lambda _: "x")
    gate.run("npd", PASS, textfile=str(tmp_path / "x.prom"), json=str(tmp_path / "v.json"))
    assert [how["strict"] for _, how in written] == [True, True]
    assert json.loads((tmp_path / "v.json").read_text())["verdict"] == "healthy"
    written.clear()
    absent = tmp_path / "absent"
    monkeypatch.setattr(entry, "Path", lambda p: absent if p == "/dev/termination-log" else Path(p))
    gate.run("k8s", PASS)
    assert written == [], "root makes no file in /dev where there is none"
    gate.run("k8s", PASS, termination_log=str(tmp_path / "t"))
    assert (tmp_path / "t").read_text() == "x"
