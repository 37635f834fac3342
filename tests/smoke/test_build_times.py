"""How long ops took to compile is kept, and said while they compile again."""

from __future__ import annotations

import importlib
import platform
import types
from pathlib import Path

import pytest

from dsdoctor.model.smoke import Event
from dsdoctor.smoke import build_times, verdict
from dsdoctor.smoke.track import Progress
from dsdoctor.smoke.watch import Watch


def _rank(*events: tuple[str, dict[str, object]], host: str | None = None) -> Progress:
    begun = Event(rank=0, phase="spawn", state="ok", data={"host": host or platform.node()})
    rows = [Event(rank=0, phase="build-ops", state=state, data=data) for state, data in events]
    return Progress(rank=0, events=[begun, *rows])


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def _built(**seconds: float) -> tuple[str, dict[str, object]]:
    return "ok", {"seconds": seconds}


def test_only_what_was_compiled_on_this_host_is_kept() -> None:
    build_times.remember([_rank(_built(CPUAdamBuilder=250.0, FusedAdamBuilder=0.4))])
    build_times.remember([_rank(_built(FusedAdamBuilder=90.0), host="elsewhere")])
    assert build_times.last_builds() == {"CPUAdamBuilder": 250.0}
    build_times.remember([_rank(_built(CPUAdamBuilder=0.3))])
    assert build_times.last_builds() == {"CPUAdamBuilder": 250.0}, "loading is no build"
    build_times.remember([_rank(_built(CPUAdamBuilder=180.0))])
    assert build_times.last_builds() == {"CPUAdamBuilder": 180.0}


def test_a_file_that_is_not_ours_counts_as_none(tmp_path: Path) -> None:
    build_times.remember([_rank(_built(CPUAdamBuilder=250.0))])
    (path,) = (one for one in tmp_path.rglob("*") if one.is_file())
    path.write_text('{"CPUAdamBuilder": "long"}')
    assert build_times.last_builds() == {}


@pytest.mark.parametrize(
    ("op", "words"),
    [
        ("CPUAdamBuilder", "the last build took 4 min 10 s"),
        ("FusedAdamBuilder", "the first build takes minutes"),
    ],
)
def test_the_phase_says_how_long_the_op_took_last_time(op: str, words: str) -> None:
    build_times.remember([_rank(_built(CPUAdamBuilder=250.0))])
    rank = _rank(("begin", {}), ("note", {"op": op, "folder": "x"}))
    made = types.SimpleNamespace(tracker=types.SimpleNamespace(ranks=[rank]))
    told: list[tuple[str, str, float | None]] = []
    watch = Watch(made, None, lambda *row: told.append(row))  # type: ignore[arg-type]
    watch._report_place()
    assert told == [("build-ops", f"{op} ({words})", None)]


def test_ops_that_ranks_compile_side_by_side_are_all_named() -> None:
    busy = _rank(
        ("begin", {}), ("note", {"op": "A"}), ("note", {"loaded": "A"}), ("note", {"op": "B"})
    )
    idle = _rank(("begin", {}), ("note", {"op": "C"}), ("note", {"loaded": "C"}))
    other = _rank(("begin", {}), ("note", {"op": "D"}))
    said = build_times.compiling([busy, idle, other], {"D": 65.0})
    assert said == "B (the first build takes minutes), D (the last build took 1 min 5 s)"
    said = build_times.compiling([busy, idle, other], {})
    assert said == "B, D (the first build takes minutes)"


def test_the_report_shows_the_time_of_the_rank_that_compiled() -> None:
    ranks = [
        _rank(_built(ShareMemCommBuilder=84.9, FusedAdamBuilder=2.3)),
        _rank(_built(ShareMemCommBuilder=0.4, FusedAdamBuilder=118.7)),
    ]
    made = types.SimpleNamespace(tracker=types.SimpleNamespace(ranks=ranks))
    phase = verdict._phase(made, "build-ops")  # type: ignore[arg-type]
    assert phase.detail == "ShareMemCommBuilder 84.9 s, FusedAdamBuilder 118.7 s"


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_each_op_is_compiled_by_one_rank_of_the_host(
    ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(build_times.__file__).parent / "worker"))
    share = importlib.import_module("dsdsmoke_rank").share
    taken = [op for rank in range(ranks) for op in share(["A", "B", "C"], rank, ranks)]
    assert sorted(taken) == ["A", "B", "C"]
    assert share(["A", "B"], 5, 1) == [], "a launcher that does not say how many ranks a host has"
