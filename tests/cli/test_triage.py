"""`triage`: an issue whose text contains a log, the output of a tool, both or neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import clean_environment, dsdoctor

PASTE = "ds_report\ntorch version .................... 2.4.0+cu121\ntorch cuda version ............... 12.1\n"


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        pytest.param("my GPU does not work\n", "UNRECOGNIZED", id="prose"),
        pytest.param("epoch 1: loss 0.3\n", "NOTHING FOUND", id="lines that may be a log"),
        pytest.param(PASTE, "NOTHING FOUND", id="the output of a tool, in which nothing is wrong"),
        pytest.param(
            "torch.OutOfMemoryError: CUDA out of memory.\n", "CAUSE gpu-oom", id="an error"
        ),
    ],
)
def test_an_issue_that_shows_nothing_is_not_clean(tmp_path: Path, text: str, begins: str) -> None:
    (tmp_path / "issue.md").write_text(text)
    done = dsdoctor("triage", "issue.md", env=clean_environment(tmp_path), cwd=tmp_path)
    assert done.out.startswith(begins)
    assert done.status == (1 if begins.startswith("CAUSE") else 3)


def test_a_log_that_is_longer_than_any_issue_is_read_to_its_end(tmp_path: Path) -> None:
    steps = "".join(
        f"2026-11-30 12:00:01,1 INFO train: step {n} loss 2.0 lr 1e-4\n" for n in range(90_000)
    )
    end = (
        "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\nKeyError: 'x'\n"
    )
    (tmp_path / "train.log").write_text(PASTE + steps + end)
    done = dsdoctor("triage", "train.log", env=clean_environment(tmp_path), cwd=tmp_path)
    assert done.out.startswith("USER CODE  the first exception is the script's own: KeyError: 'x'")
    assert "not read: the output of environment tools below line " in done.out
    # the beginning states the release of torch
    assert "collect_env" not in done.out.rpartition("ask for")[2]


def test_a_paste_that_is_too_long_is_not_read_in_part_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text(
        PASTE + "".join(f"row {n} of a table\n" for n in range(300_000))
    )
    env = clean_environment(tmp_path)
    done = dsdoctor("check", "--from-report", "long.txt", env=env, cwd=tmp_path)
    assert "dsdoctor: `long.txt` is read down to line " in done.err
    (tmp_path / "issue.txt").write_text(PASTE)
    assert (
        "is read down"
        not in dsdoctor("check", "--from-report", "issue.txt", env=env, cwd=tmp_path).err
    )
