"""What a kept run looks like: on narrow terminals, and its memory beside the prediction."""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.model.diagnosis import Diagnosis, FirstError, Line, Outcome
from dsdoctor.model.run_record import (
    Figures,
    PassedSignal,
    Prediction,
    RankEnd,
    RunRecord,
)
from dsdoctor.model.units import GIB
from dsdoctor.report.html import run as pages
from dsdoctor.run import ending, report
from dsdoctor.run.notices import Notices
from dsdoctor.run.progress import Progress
from tests.run.support import folder_of, quick, run

COMMAND = ("deepspeed", "--num_gpus", "8", "train.py", "--deepspeed", "ds_config.json", "--epochs")
RUNS = [
    (Path("20261123-060122-train"), RunRecord(command=COMMAND, status=0, seconds=7270)),
    (Path("20261123-070122-train"), RunRecord(command=COMMAND, status=3, seconds=42)),
    (Path("20261123-080122-train"), RunRecord(command=COMMAND, status=-9, seconds=4.2)),
    (Path("20261123-090122-train"), RunRecord(command=COMMAND, pid=0, host="other", seconds=4.2)),
    (
        Path("20261123-090122-train"),
        RunRecord(command=COMMAND, pid=(1 << 22) - 1, host=platform.node()),
    ),
]


@pytest.mark.parametrize("columns", [200, 100, 80, 60, 50])
def test_a_line_of_the_list_fits_the_terminal(columns: int) -> None:
    rows = report.table(RUNS, Path("/r"), columns).splitlines()
    ended = "unknown:" if columns > 72 else "unknown"  # dsdoctor was killed
    assert max(map(len, rows)) <= columns
    assert [row.split()[0] for row in rows] == [path.name for path, _ in RUNS]
    assert [row.split()[1] for row in rows] == ["ok", "status", "SIGKILL", "running", ended]
    assert ("…" in rows[0]) == (columns >= 60)
    assert all(("deepspeed" in row) == (columns >= 60) for row in rows)


def test_a_list_in_a_pipe_does_not_depend_on_a_terminal() -> None:
    rows = report.table(RUNS, Path("/r")).splitlines()
    assert rows == report.table(RUNS, Path("/r"), 200).splitlines()


@pytest.mark.parametrize("columns", [200, 60])
def test_two_runs_side_by_side_fit_the_terminal(tmp_path: Path, columns: int) -> None:
    before, after = ((tmp_path / path, record) for path, record in RUNS[:2])
    rows = report.compare(before, after, columns).splitlines()
    assert max(map(len, rows)) <= columns
    assert all(any(path.name in row for row in rows) for path, _ in RUNS[:2])
    assert any(row.split()[:3] == ["duration", "2", "h"] for row in rows)


def test_memory_of_the_ranks_is_told_apart_from_that_of_all_programs() -> None:
    notices, progress = Notices(), Progress()
    host = {"used": 50 * GIB, "total": 99 * GIB}
    for moment, sizes in enumerate(([], [3, 1], [2, 4], [1])):
        ranks = [{"rank": n, "pid": 9, "rss": s * GIB, "cpu": 1} for n, s in enumerate(sizes)]
        job = {"cpu": 1.0, "python": 7, "rss": 5 * GIB}  # of the launcher
        notices.feed({"t": float(moment), "host": host, "ranks": ranks, "job": job}, progress)
    found = ending.figures_of(progress, notices)
    assert found.peak_rank_bytes == {"0": 3 * GIB, "1": 4 * GIB}
    assert found.peak_ranks_bytes == 6 * GIB
    rows = dict(row[:2] for row in report.figure_rows(RunRecord(figures=found), RunRecord()))
    assert rows["peak memory of ranks"] == "6.0 GiB"
    assert rows["host, all programs"] == "50.0 GiB"
    assert "peak host memory" in {
        row.name for row in report.figures(RunRecord(figures=found), RunRecord())
    }


def test_a_job_without_ranks_has_one() -> None:
    notices = Notices()
    for moment, size in enumerate((1, 3, 2)):
        job = {"cpu": 1.0, "python": 7, "rss": size * GIB}
        notices.feed({"t": float(moment), "ranks": [], "job": job}, Progress())
    assert (notices.peak_rank, notices.peak_ranks) == ({"0": 3 * GIB}, 3 * GIB)


def test_each_gpu_and_the_ranks_stand_beside_the_prediction() -> None:
    figures = Figures(
        peak_gpu_bytes={"0": 19 * GIB, "1": 20 * GIB},
        peak_rank_bytes={"0": 3 * GIB, "1": 4 * GIB},
        peak_ranks_bytes=7 * GIB,
        peak_host_bytes=40 * GIB,
        predicted=Prediction(gpu_bytes=18 * GIB, host_bytes=8 * GIB, ranks=2),
    )
    shown = report.show(Path("/r/x"), RunRecord(status=0, figures=figures)).splitlines()
    assert "GPU peak  GPU 0 19.0 GiB, GPU 1 20.0 GiB; 18.0 GiB predicted" in shown
    assert "host peak 7.0 GiB resident of all ranks; rank 1 had 4.0 GiB; 8.0 GiB predicted" in shown
    assert pages.memory_rows(figures) == [
        ("peak memory of GPU 0", "19.0 GiB (18.0 GiB predicted)"),
        ("peak memory of GPU 1", "20.0 GiB (18.0 GiB predicted)"),
        ("peak host memory of rank 0", "3.0 GiB"),
        ("peak host memory of rank 1", "4.0 GiB"),
        ("peak host memory of all ranks", "7.0 GiB (8.0 GiB predicted)"),
        ("peak host memory, all programs", "40.0 GiB"),
    ]


def test_the_curves_show_the_level_that_was_predicted() -> None:
    samples = [{"seconds": t, "gpu0.used": t * GIB, "rank0.rss": GIB} for t in (1.0, 2.0)]
    known = Prediction(gpu_bytes=18 * GIB, host_bytes=8 * GIB, ranks=2)

    def titles(predicted: Prediction | None) -> set[str]:
        record = RunRecord(figures=Figures(predicted=predicted))
        return {drawing.shapes[0].text for drawing, _ in pages.charts(record, [], samples)}

    assert {one for one in titles(known) if "predicted" in one} == {
        "GPU memory in use, GiB; dashed: predicted",
        "resident host memory of each rank, GiB; dashed: predicted",
    }
    assert not any("predicted" in one for one in titles(None))


def _raised(kind: str, message: str) -> Diagnosis:
    line = Line(file="output-000001.log.gz", line=9, text=f"{kind}: {message}")
    error = FirstError(rank=0, type=kind, message=message, file="api.py", line=1, log=line)
    return Diagnosis(outcome=Outcome.UNRECOGNISED, summary="no condition fits", first_error=error)


@pytest.mark.parametrize(
    ("kind", "message", "ours"),
    [
        ("SignalException", "Process 9 got signal: 15", True),  # torchrun's, about the same signal
        ("ValueError", "no such checkpoint", False),
    ],
)
def test_who_sent_a_signal_is_not_hidden_by_what_a_launcher_raises(
    kind: str, message: str, *, ours: bool
) -> None:
    record = RunRecord(status=1, signals=[PassedSignal(name="SIGTERM", time=3.0)])
    found = ending.of_ended(_raised(kind, message), record)
    assert found is not None
    assert found.summary.startswith("SIGTERM from outside") is ours
    said = list(ending.death_lines(record, found, Path("/r/x")))
    assert any(line.startswith("cause: SIGTERM from outside") for line in said) is ours
    alone = ending.of_ended(_raised(kind, message), RunRecord(status=1))
    assert alone == _raised(kind, message)  # nobody sent one


def end(rank: int, time: float, status: int | None) -> RankEnd:
    return RankEnd(rank=rank, pid=100 + rank, time=time, status=status)


@pytest.mark.parametrize(
    ("ends", "first"),
    [
        pytest.param([end(1, 3.0, -9), end(0, 3.5, 1)], 1, id="rank 1 failed first"),
        pytest.param(
            [end(0, 3.0, 0), end(1, 9.0, -11), end(2, 9.5, -15)],
            1,
            id="a rank that succeeded before does not count",
        ),
        pytest.param(
            [end(1, 3.0, None), end(0, 3.5, -9)], None, id="the status of the first is unknown"
        ),  # the launcher may have killed rank 0
        pytest.param(
            [end(1, 3.0, -9), end(0, 3.01, 1)], None, id="a signal and an error at one time"
        ),  # seen in one look
        pytest.param([end(1, 3.0, -9), end(0, 3.01, -9)], 1, id="one signal to two ranks"),
        pytest.param(
            [end(1, 3.0, -9), end(0, 3.5, -15), end(0, 9.0, 1), end(1, 9.5, -15)],
            0,
            id="the last attempt of a job that was restarted counts",
        ),  # 2nd start
        pytest.param([end(0, 3.0, 0), end(1, 3.5, 0)], None, id="no rank failed"),
        pytest.param([], None, id="no rank ended"),
    ],
)
def test_the_first_rank_that_failed(ends: list[RankEnd], first: int | None) -> None:
    found = ending.first_failure(ends)
    assert (None if found is None else found.rank) == first


@pytest.mark.parametrize(
    ("diagnosis", "output", "said"),
    [
        pytest.param(None, 0, "cause     unknown; the job printed nothing", id="no output"),
        pytest.param(Diagnosis(outcome=Outcome.CLEAN, summary="the log shows no failure"), 9,
         "cause     unknown; the output shows no failure", id="an output without a failure"),
    ],
)  # fmt: skip
def test_show_says_of_a_death_what_was_said_at_its_end(
    diagnosis: Diagnosis | None, output: int, said: str
) -> None:
    document: dict[str, Any] | None = None if diagnosis is None else ending.document(diagnosis)
    record = RunRecord(status=1, seconds=3.0, diagnosis=document, output_bytes=output)
    assert said in report.show(Path("/r/x"), record).splitlines()


@pytest.mark.skipif(sys.platform != "linux", reason="watching needs Linux")
def test_the_list_of_real_runs_is_short_for_a_pipe(tmp_path: Path) -> None:
    quick(tmp_path, "--", "sh", "-c", "exit 3")
    assert run(tmp_path, "list").stdout.split()[:3] == [folder_of(tmp_path).name, "status", "3"]


@pytest.mark.parametrize(
    ("state", "said"),
    [
        pytest.param(
            "PENDING", "Slurm requeued job 8; its state is PENDING now", id="pending again"
        ),
        pytest.param(
            "REQUEUE_HOLD",
            "Slurm requeued job 8; its state is REQUEUE_HOLD now",
            id="held after a requeue",
        ),
        pytest.param(
            "RUNNING",
            "SIGTERM from outside; a scheduler, `timeout` or a user sends it",
            id="still running",
        ),
        pytest.param(
            "",
            "SIGTERM from outside; a scheduler, `timeout` or a user sends it",
            id="a job that Slurm no longer knows",
        ),
    ],
)
def test_a_job_that_waits_again_was_requeued(state: str, said: str) -> None:
    sent = [PassedSignal(name="SIGTERM", time=3.0)]
    record = RunRecord(status=1, signals=sent, slurm_job="8", slurm_state=state)
    assert ending.from_outside(record) == said
