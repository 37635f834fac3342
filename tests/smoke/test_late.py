"""A run that was not done in time: hung, or only slow, and where."""

from __future__ import annotations

import json
import platform
import subprocess
import time
from pathlib import Path

import pytest

from dsdoctor import packs, process
from dsdoctor.model.smoke import PHASES, Event, Phase, SmokeReport
from dsdoctor.report import smoke as text_report
from dsdoctor.smoke import request, verdict
from dsdoctor.smoke.attempt import Attempt
from dsdoctor.smoke.track import DEADLINES, Tracker
from dsdoctor.smoke.watch import Watch
from tests.smoke.test_plan import seen


def stopped(
    folder: Path, phases: tuple[str, str], *, reason: str, quiet: float, seconds: float = 25.0
) -> SmokeReport:
    """Two ranks that were in these phases, and said nothing for the last `quiet` seconds."""
    plan = request.plan(request.SmokeOptions(), seen)
    began = time.time() - seconds
    made = Attempt(
        plan=plan, argv=(), env={}, tracker=Tracker(folder, plan.world), folder=folder,
        reason=reason, seconds=seconds, started=began, timeout=seconds, overdue=(0, 1),
    )  # fmt: skip
    last = began + seconds - quiet
    for progress, phase in zip(made.tracker.ranks, phases, strict=True):
        for name in PHASES[: PHASES.index(phase)]:
            progress.events.append(
                Event(rank=progress.rank, phase=name, state="ok", time=began + 1, seconds=0.5)
            )
        progress.events.append(Event(rank=progress.rank, phase=phase, state="begin", time=last))
    return verdict.report(made, packs.load(builtin_only=True))


def phase(report: SmokeReport, name: str) -> Phase:
    return next(row for row in report.phases if row.name == name)


def test_a_slow_import_is_no_hang_of_nccl(tmp_path: Path) -> None:
    report = stopped(tmp_path, ("import", "import"), reason="timeout", quiet=14.0)
    assert report.causes == ()
    assert report.summary == (
        "the run took longer than its limit of 25 s (`--timeout`), with rank 0 in import, "
        "rank 1 in import"
    )
    assert phase(report, "import") == Phase(
        name="import", status="fail", seconds=14.0, detail="not completed by rank 0, 1"
    )


def test_steps_that_still_come_are_slow_and_not_hung(tmp_path: Path) -> None:
    report = stopped(tmp_path, ("steps", "steps"), reason="timeout", quiet=1.0)
    assert report.causes == ()
    assert "`--timeout`" in report.summary


def test_steps_that_come_no_more_hang(tmp_path: Path) -> None:
    report = stopped(tmp_path, ("steps", "steps"), reason="timeout", quiet=20.0)
    assert [cause.condition for cause in report.causes] == ["nccl-timeout-watchdog"]


def test_a_rank_behind_the_others_is_named(tmp_path: Path) -> None:
    report = stopped(tmp_path, ("rendezvous", "collectives"), reason="hang", quiet=20.0)
    assert [cause.condition for cause in report.causes] == ["rendezvous-timeout"]
    assert "rank 0 did not arrive" in report.summary


def test_a_phase_over_its_own_limit(tmp_path: Path) -> None:
    report = stopped(tmp_path, ("numerics", "numerics"), reason="hang", quiet=70.0, seconds=90.0)
    assert report.causes == ()
    assert report.summary.startswith("one phase took longer than its limit of 60 s: rank 0 in")


def test_an_interrupted_run_says_where_and_how_long(tmp_path: Path) -> None:
    report = stopped(tmp_path, ("build-ops", "build-ops"), reason="interrupted", quiet=12.0)
    row = phase(report, "build-ops")
    assert (row.status, row.seconds) == ("stopped", 12.0)
    assert phase(report, "engine-init").status == "not-reached"
    assert "stop  build-ops      12.0 s  rank 0 was in build-ops" in text_report.render(report, 80)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_of_the_reports_own_words_is_wider_than_the_screen(
    tmp_path: Path, width: int
) -> None:
    report = stopped(tmp_path, ("steps", "steps"), reason="timeout", quiet=20.0)
    lines = text_report.render(report, width).splitlines()
    assert [line for line in lines if len(line) > width] == []


@pytest.mark.parametrize(("host", "died"), [(platform.node(), True), ("elsewhere", False)])
def test_a_process_number_of_another_host_says_nothing_here(
    tmp_path: Path, host: str, died: bool
) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    line = {"rank": 0, "phase": "spawn", "pid": ended.pid}
    rows = [{**line, "state": "begin"}, {**line, "state": "ok", "data": {"host": host}}]
    (tmp_path / "rank-0.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    plan = request.plan(request.SmokeOptions(), seen)
    made = Attempt(
        plan=plan, argv=(), env={}, tracker=Tracker(tmp_path, plan.world), folder=tmp_path,
        timeout=500.0,
    )  # fmt: skip
    child = process.Child(["sleep", "60"])
    try:
        assert Watch(made, child, lambda *_: None).reason() is None
        assert (made.tracker.ranks[0].died is not None) is died
    finally:
        child.wait(0.0)


def test_ranks_that_share_a_cpu_get_as_much_longer(tmp_path: Path) -> None:
    """Eight ranks on two CPUs import, compile and end in turns."""
    line = {"rank": 0, "phase": "import", "state": "begin"}
    (tmp_path / "rank-0.jsonl").write_text(json.dumps(line) + "\n")
    alone, shared, wide = (Tracker(tmp_path, 1, per_cpu) for per_cpu in (1.0, 4.0, 0.1))
    for tracker in (alone, shared, wide):
        tracker.read(100.0)
        assert not tracker.overdue(100.0 + DEADLINES["import"])
    late = 101.0 + DEADLINES["import"]
    assert alone.overdue(late) == alone.ranks
    assert wide.overdue(late) == wide.ranks  # more CPUs than ranks shorten no limit
    assert not shared.overdue(late)
    assert shared.overdue(101.0 + 4 * DEADLINES["import"]) == shared.ranks
