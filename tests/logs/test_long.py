"""Logs of real runs made long: hours of healthy steps on 64 ranks, and then what happened."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dsdoctor import packs
from dsdoctor.logs import diagnose, signatures_of
from dsdoctor.logs.reader import find_sources
from tests.support import longlogs

KNOWN = signatures_of(packs.load(builtin_only=True))
CASES = longlogs.cases()
SIZE = 1_000_000
#: Folders at the root of the machine that the recordings play on, and where a wheel was built (`__w`).
PLACES = {"opt", "tmp", "__w", "ckpt", "home", "dev", "usr", "data"}


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_long(case: longlogs.Case, tmp_path: Path) -> None:
    found = diagnose(find_sources(longlogs.write(case, tmp_path, SIZE, 64)), KNOWN)
    said = found.causes[0].condition if found.causes else found.outcome.value
    assert longlogs.is_right(case, said), found.summary


def test_no_recording_is_large_or_names_the_machine_that_made_it() -> None:
    for case in CASES:
        for name, text in case.files.items():
            roots = set(re.findall(r"(?<![\w/.:<~*-])/(\w[\w.-]*)(?=/)", text))
            assert roots <= PLACES, (case.name, name)
            assert "@" not in text.replace("@ds", ""), (case.name, name)
    for path in longlogs.FOLDER.rglob("*.xz"):
        assert path.stat().st_size <= 60 << 10, path


def test_the_failure_stays_as_it_was_recorded(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == "torchrun_keyerror")
    longlogs.write(case, tmp_path, SIZE, 64)
    long, short = (tmp_path / "train.log").read_text(), case.files["train.log"]
    first = short.index("[rank2]: Traceback")
    for line in short[first:].splitlines():
        assert longlogs.BAR.search(line) or line in long


def test_steps_and_times_of_a_long_log_count_on(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == "torchrun_keyerror")
    longlogs.write(case, tmp_path, SIZE, 64)
    text = (tmp_path / "train.log").read_text()
    steps = [int(n) for n in re.findall(r"\[Rank 0\] step (\d+)/", text)]
    times = re.findall(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d+\] \[INFO\] .{1,40}\[Rank 0\]", text)
    assert len(steps) > 100
    assert steps == sorted(steps)
    assert times == sorted(times)
    assert {f"[Rank {rank}]" in text for rank in range(64)} == {True}
