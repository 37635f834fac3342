"""A kept run of somebody else: what its files name does not reach a program as a command."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dsdoctor.cli.run import _print_notice
from dsdoctor.model.run_record import RunRecord
from dsdoctor.run import metrics, store
from tests.attack.conftest import Trap
from tests.support.command import clean_environment, dsdoctor

FORMULAS = ("=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(1)", "\t=1", "\r=1", " =1", "=1,2", "é")


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_column_of_a_table_is_a_formula(tmp_path: Path, formula: str) -> None:
    step = {"t": 1.0, "step": 3, "loss": 2.5, "tokens_per_second": 7, formula: 1}
    (tmp_path / "steps.jsonl").write_text(json.dumps(step) + "\n")
    sample = {"t": 2.0, "host": {"used": 5, formula: 6}, "ranks": [{"rank": 0, "rss": 1, "cpu": 2}]}
    (tmp_path / "samples.jsonl").write_text(json.dumps(sample) + "\n")
    steps, samples = metrics.step_rows(tmp_path), metrics.flat_samples(tmp_path, 1.0)
    assert metrics.to_csv(steps).splitlines()[0] == "t,step,loss,tokens_per_second"
    assert metrics.to_csv(samples).splitlines()[0] == "seconds,host.used,rank0.rss,rank0.cpu"


def test_the_name_of_an_empty_folder_does_not_steer_the_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "runs\x1b]52;c;QUJD\x07"
    done = dsdoctor("run", "--runs-dir", str(folder), "list", env=clean_environment(tmp_path))
    assert done.status == 0
    assert done.out[:-1].isprintable()


def test_a_checkpoint_s_name_steers_no_terminal_and_keeps_no_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = "ghp_" + "fb2b7fce0940161406a6" + "aa3e4d8b4aa61040"
    said = f"Saving model checkpoint to /x/\x1b]52;c;QUJD\x07\x9b2J\u202e/{token}"
    env = clean_environment(tmp_path)
    runs = ("run", "--runs-dir", str(tmp_path / "runs"))
    code = f"import sys; print({said!r}); sys.exit(3)"
    done = dsdoctor(*runs, "--preflight", "off", "--", sys.executable, "-c", code, env=env)
    (line,) = (line for line in done.err.splitlines() if "last checkpoint" in line)
    assert line.isprintable()
    (record,) = (tmp_path / "runs").glob("*/run.json")
    for text in (done.err, json.loads(record.read_text())["checkpoint"]):
        assert token not in text
        assert "[masked" in text
    capsys.readouterr()
    _print_notice("it waits in f\x1b[2J\u202e (a.py:1)")
    assert capsys.readouterr().err[:-1].isprintable()


def test_a_run_that_another_account_plants_removes_none_of_ours(trap: Trap) -> None:
    """In a folder of runs that several accounts share, as in /tmp."""
    base = trap.folder / "runs"
    base.mkdir()
    for day, name in enumerate(("ours-1", "theirs", "ours-2", "ours-3"), start=1):
        folder = base / name
        folder.mkdir()
        record = RunRecord(id=name, status=0, started=f"2026-01-0{day}T00:00:00+00:00")
        store.save(folder, record)
        if name == "theirs":
            with (folder / "samples.jsonl").open("wb") as file:
                file.truncate(1 << 40)
            trap.give(folder)
    assert store.prune(base) == []
    assert store.prune(base, kept=0) == ["ours-1", "ours-2"]
    assert sorted(path.name for path in base.iterdir()) == ["ours-3", "theirs"]
