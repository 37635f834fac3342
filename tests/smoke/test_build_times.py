"""How long ops took to compile is kept, and said while they compile again."""

from __future__ import annotations

import platform
import types
from pathlib import Path

import pytest

from dsdoctor.model.smoke import Event
from dsdoctor.smoke import build_times
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
    assert build_times.known() == {"CPUAdamBuilder": 250.0}
    build_times.remember([_rank(_built(CPUAdamBuilder=0.3))])
    assert build_times.known() == {"CPUAdamBuilder": 250.0}, "loading is no build"
    build_times.remember([_rank(_built(CPUAdamBuilder=180.0))])
    assert build_times.known() == {"CPUAdamBuilder": 180.0}


def test_a_file_that_is_not_ours_counts_as_none(tmp_path: Path) -> None:
    build_times.remember([_rank(_built(CPUAdamBuilder=250.0))])
    (path,) = (one for one in tmp_path.rglob("*") if one.is_file())
    path.write_text('{"CPUAdamBuilder": "long"}')
    assert build_times.known() == {}


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
    watch._tell_place()
    assert told == [("build-ops", f"build-ops ({op}); {words}", None)]
