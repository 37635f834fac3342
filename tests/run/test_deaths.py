"""How a real job of DeepSpeed's engines dies, and what `dsdoctor run` says of it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from dsdoctor.run.flight import PIPES
from tests.run.deaths import LAUNCHERS, die, wrong
from tests.run.support import (
    ended_first,
    folder_of,
    launch,
    quick,
    record,
    sampled_ranks,
    spoken,
)

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="watching needs Linux"),
    pytest.mark.train,
    pytest.mark.timeout(1200),  # DeepSpeed builds one op, unless tests/run.sh has
]


def test_a_rank_that_is_killed_is_named_with_the_order_of_death(
    tmp_path: Path, job: str, port: str
) -> None:
    done = quick(tmp_path, "--", *launch("deepspeed", tmp_path, port), job, "kill")
    assert done.returncode != 0
    found = record(tmp_path)
    assert ended_first(found, 1)
    assert found["diagnosis"]["causes"][0]["condition"] == "rank-killed"
    assert any("cause: rank-killed: " in line for line in spoken(done.stderr))


@pytest.mark.skipif(sys.version_info >= (3, 15), reason="py-spy has no wheel there")
def test_a_hang_names_the_rank_that_is_waited_for_and_can_be_stopped(
    tmp_path: Path, job: str, port: str
) -> None:
    words = ("--hang-after", "4s", "--on-hang", "stop", "--")
    done = quick(tmp_path, *words, *launch("torchrun", tmp_path, port), job, "hang")
    assert done.returncode != 0
    hang = record(tmp_path)["hang"]
    assert hang.startswith("no output and no work for")
    assert re.search(r"rank 1 is in load_next_batch \(.*train.py:\d+\)|of 2 ranks wait in", hang)
    assert re.search(r"rank 1 never started collective \d+ of group ", hang)
    assert "while rank 0 waits in it" in hang
    said = spoken(done.stderr)
    assert any(line.startswith("dsdoctor: cause: the job hung: no output") for line in said)
    assert not any("SignalException" in line for line in said)  # that was dsdoctor's own SIGTERM
    pipes = Path(record(tmp_path)["env_set"][PIPES])  # other runs on this machine have theirs
    assert list(pipes.parent.glob(f"{pipes.name}*")) == []
    stacks = {path.name: path.read_text() for path in (folder_of(tmp_path) / "stacks").iterdir()}
    assert sorted(stacks) == ["rank-0.txt", "rank-1.txt"]
    assert "load_next_batch" in stacks["rank-1.txt"]
    assert "backward" in stacks["rank-0.txt"] or "step" in stacks["rank-0.txt"]


def test_ctrl_c_reaches_every_rank_and_is_the_cause(tmp_path: Path, job: str, port: str) -> None:
    ended = die("ctrl-c", "accelerate", tmp_path, port, job)
    assert wrong("ctrl-c", ended) == [], ended.err


def test_ranks_use_the_grace_after_a_term_to_save(tmp_path: Path, job: str, port: str) -> None:
    ended = die("term", "python", tmp_path, port, job)
    assert wrong("term", ended) == [], ended.err
    assert ended.status == 0, ended.err
    assert all(f"rank {rank} has saved" in ended.out for rank in (0, 1))
    saved = tmp_path / "out"
    assert [path.name for path in saved.glob("global_step*/mp_rank_*")]
    assert Path(ended.record["checkpoint"]).parent == saved
    assert sampled_ranks(tmp_path) == {0, 1}


#: What the launcher has a part in, under those launchers that no test above runs with an engine.
#: All of them with an engine: `benchmarks/run_deaths.py`.
OTHERS = [
    (how, launcher)
    for how, seen in (
        ("kill", "deepspeed"),
        ("hang", "torchrun"),
        ("ctrl-c", "accelerate"),
        ("term", "python"),
    )
    for launcher in LAUNCHERS
    if launcher != seen
]


@pytest.mark.skipif(sys.version_info >= (3, 15), reason="py-spy has no wheel there")
@pytest.mark.parametrize(("how", "launcher"), OTHERS)
def test_the_same_under_the_other_launchers(
    tmp_path: Path, light_job: str, port: str, how: str, launcher: str
) -> None:
    ended = die(how, launcher, tmp_path, port, light_job)
    assert wrong(how, ended) == [], ended.err
