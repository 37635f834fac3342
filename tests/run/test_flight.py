"""Pipes through which ranks are asked for dumps of torch's flight recorder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from dsdoctor.run import flight
from dsdoctor.run.flight import pipe_prefix

pytestmark = pytest.mark.skipif(
    sys.platform != "linux",
    reason="a run asks for dumps on Linux only: pipe_prefix() is empty elsewhere",
)


def test_pipes_are_announced_only_where_they_can_be_removed() -> None:
    assert pipe_prefix(["torchrun", "train.py"]).startswith("/tmp/dsdoctor-")
    assert pipe_prefix(["srun", "-N2", "torchrun", "train.py"]) == ""
    assert pipe_prefix(["flux", "run", "-N2", "torchrun", "train.py"]) == ""


def test_pipes_of_a_run_that_was_killed_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, read, fresh = (tmp_path / f"dsdoctor-{n}-rank-0.pipe" for n in ("left", "read", "fresh"))
    foreign = tmp_path / "dsdoctor-x-rank-0.pipe"
    foreign.write_text("a file of somebody's")
    for pipe in (left, read, fresh):
        os.mkfifo(pipe)
    for place in (left, read, foreign):
        os.utime(place, (1, 1))
    monkeypatch.setattr(flight, "_PLACE", tmp_path)
    rank = os.open(read, os.O_RDONLY | os.O_NONBLOCK)
    try:
        flight.sweep()
    finally:
        os.close(rank)
    assert set(tmp_path.iterdir()) == {read, fresh, foreign}
