"""Real jobs of two ranks with DeepSpeed's own engines under each launcher, watched by `dsdoctor run`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.run.support import folder_of, launch, quick, record, sampled_ranks, spoken

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="watching needs Linux"),
    pytest.mark.train,
    pytest.mark.timeout(1200),  # DeepSpeed builds one op, unless tests/run.sh has
]

LAUNCHERS = ("deepspeed", "accelerate", "python", "torchrun")


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_run_that_works_is_one_line_with_the_figures_that_deepspeed_prints(
    tmp_path: Path, job: str, port: str, launcher: str
) -> None:
    how = "nan" if launcher == "torchrun" else "well"  # DeepSpeed's status is 0 with either
    done = quick(tmp_path, "--", *launch(launcher, tmp_path, port), job, how, timeout=1000)
    assert done.returncode == 0, done.stdout + done.stderr
    printed = re.findall(r"steps: (\d+) loss: (\S+) iter time \(s\): ([\d.]+)", done.stdout)
    assert [step for step, _, _ in printed] == ["1", "2", "3", "4", "5", "6"]
    kept = (folder_of(tmp_path) / "steps.jsonl").read_text().splitlines()
    rows = [json.loads(row) for row in kept]
    pipeline = [(str(r["step"]), f"{r['loss']:.4f}", r["seconds"]) for r in rows if "loss" in r]
    assert pipeline == [(step, loss, float(time)) for step, loss, time in printed]
    assert {r["step"] for r in rows if r.get("learning_rate") == 0.01} >= {1, 2}
    *before, last = spoken(done.stderr)
    found = record(tmp_path)
    assert before == (["dsdoctor: the loss is NaN"] if how == "nan" else [])
    assert [notice["key"] for notice in found["notices"]].count("loss-nan") == len(before)
    assert re.search(r"; last step 6; [\d.]+ s per step; .*loss ", last)  # a busy machine is slow
    assert found["figures"]["steps"] == 6
    assert found["figures"]["step_seconds"] >= 0.2
    assert found["figures"]["samples_per_second"] > 0
    assert sampled_ranks(tmp_path) == {0, 1}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_rank_whose_exception_ended_the_job_is_named(
    tmp_path: Path, job: str, port: str, launcher: str
) -> None:
    done = quick(tmp_path, "--", *launch(launcher, tmp_path, port), job, "key", timeout=1000)
    # `deepspeed` passes on the status of the rank that it finds dead first, and Gloo may abort the
    # rank that is left alone (128 + 6 as a shell counts, -6 modulo 256 as `deepspeed` does)
    assert done.returncode in ({1, 250} if launcher == "deepspeed" else {1})
    found = record(tmp_path)["diagnosis"]
    assert found["outcome"] == "user-code", found["summary"]
    assert found["first_error"]["type"] == "KeyError"
    said = spoken(done.stderr)
    assert len(said) <= 10
    assert any("KeyError: 'missing'" in line for line in said)
    assert any(f"{job}:" in line for line in said)
    assert sampled_ranks(tmp_path) == {0, 1}
    if launcher in ("torchrun", "accelerate"):  # the others do not say which rank writes
        assert found["first_error"]["rank"] == 1
