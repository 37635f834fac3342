"""Real jobs of two ranks with DeepSpeed's own engines under each launcher, watched by `dsdoctor run`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsdoctor.host import free_port
from tests.run.support import folder_of, quick, record, spoken

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="watching needs Linux"),
    pytest.mark.train,
    pytest.mark.timeout(1200),  # DeepSpeed builds one op, unless tests/run.sh has
]

#: The usual engine, which prints steps and learning rate, then the pipeline's, which prints loss
#: and time. Reads the variables that each of the launchers sets.
TRAIN = """
import sys, time, torch, deepspeed, torch.distributed as dist
from deepspeed.pipe import PipelineModule
from deepspeed.utils import logger
for one in (logger, *logger.handlers): one.setLevel("INFO")
deepspeed.init_distributed(dist_backend="gloo")
torch.manual_seed(7)
how, calls = sys.argv[-1], 0
rows = [(torch.randn(2, 8), torch.randn(2, 1)) for _ in range(6)]
config = {
    "train_micro_batch_size_per_gpu": 2,
    "steps_per_print": 1,
    "zero_optimization": {"stage": 1},
}

def loss_of(output, wanted):
    global calls
    calls += 1
    time.sleep(0.2)
    if how == "key" and calls == 6 and dist.get_rank() == 1: {}["missing"]
    return torch.nn.functional.mse_loss(output, wanted) * (float("nan") if how == "nan" and calls > 6 else 1)

def started(model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    engine, *_ = deepspeed.initialize(model=model, config=config, optimizer=optimizer)
    assert engine.zero_optimization_stage() == 1
    return engine

engine = started(torch.nn.Linear(8, 1))
for inputs, wanted in rows[:2]:
    engine.backward(loss_of(engine(inputs), wanted))
    engine.step()
engine = started(PipelineModule([torch.nn.Linear(8, 1)], num_stages=1, loss_fn=loss_of))
for _ in range(6): engine.train_batch(data_iter=iter(rows))
dist.barrier()
dist.destroy_process_group()
"""
#: Two ranks without a launcher: the script starts the other one.
BY_HAND = """
import os, subprocess, sys
kids = [subprocess.Popen([sys.executable, *sys.argv[2:]], env={**os.environ, "RANK": str(rank),
        "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": sys.argv[1]}) for rank in (0, 1)]
sys.exit(int(any([kid.wait() for kid in kids])))  # Gloo may abort the rank that is left alone
"""


def _command(launcher: str, folder: Path, port: str) -> list[str]:
    if launcher == "python":
        path = folder / "start.py"
        path.write_text(BY_HAND)
        return [sys.executable, str(path), port]
    if launcher == "deepspeed":
        return ["deepspeed", "--num_gpus", "2", "--master_port", port]
    if launcher == "accelerate":  # `--cpu` starts one process; the script uses no GPU
        return [
            "accelerate", "launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1",
            "--main_process_port", port,
        ]  # fmt: skip
    return ["torchrun", "--nproc-per-node", "2", "--master-port", port]


LAUNCHERS = ("deepspeed", "accelerate", "python", "torchrun")


@pytest.fixture(name="port")
def _port() -> Iterator[str]:
    """A master port; DeepSpeed's ops leave their shared memory behind, whose names have it."""
    port = str(free_port())
    yield port
    for path in Path("/dev/shm").glob(f"deepspeed_*_{port}_*"):
        path.unlink()


@pytest.fixture(name="script")
def _script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    path = tmp_path / "train.py"
    path.write_text(TRAIN)
    return str(path)


def _sampled(folder: Path) -> set[int]:
    """Ranks that were seen while the job ran."""
    rows = (folder_of(folder) / "samples.jsonl").read_text().splitlines()
    return {rank["rank"] for row in rows for rank in json.loads(row)["ranks"]}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_run_that_works_is_one_line_with_the_figures_that_deepspeed_prints(
    tmp_path: Path, script: str, port: str, launcher: str
) -> None:
    how = "nan" if launcher == "torchrun" else "none"  # DeepSpeed's status is 0 with either
    done = quick(tmp_path, "--", *_command(launcher, tmp_path, port), script, how, timeout=1000)
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
    assert _sampled(tmp_path) == {0, 1}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_rank_whose_exception_ended_the_job_is_named(
    tmp_path: Path, script: str, port: str, launcher: str
) -> None:
    done = quick(tmp_path, "--", *_command(launcher, tmp_path, port), script, "key", timeout=1000)
    # `deepspeed` passes on the status of the rank that it finds dead first, and Gloo may abort the
    # rank that is left alone (128 + 6 as a shell counts, -6 modulo 256 as `deepspeed` does)
    assert done.returncode in ({1, 250} if launcher == "deepspeed" else {1})
    found = record(tmp_path)["diagnosis"]
    assert found["outcome"] == "user-code", found["summary"]
    assert found["first_error"]["type"] == "KeyError"
    said = spoken(done.stderr)
    assert len(said) <= 10
    assert any("KeyError: 'missing'" in line for line in said)
    assert any(f"{script}:" in line for line in said)
    assert _sampled(tmp_path) == {0, 1}
    if launcher in ("torchrun", "accelerate"):  # the others do not say which rank writes
        assert found["first_error"]["rank"] == 1
