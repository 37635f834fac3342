"""A job of two ranks with DeepSpeed's own engines, on CPUs: their lines are read as they are."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsdoctor.host import free_port
from tests.run.support import folder_of, quick, record

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="watching needs Linux"),
    pytest.mark.train,
    pytest.mark.timeout(1200),  # DeepSpeed builds one op, unless tests/run.sh has
]

#: The usual engine, which prints steps and learning rate, then the pipeline's, which prints loss
#: and time. A sleep of 10 ms makes every step longer than the last digit that is printed.
TRAIN = """
import argparse, time, torch, deepspeed
from deepspeed.pipe import PipelineModule
from deepspeed.utils import logger
parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int)
parser.add_argument("--config")
given = parser.parse_args()
for one in (logger, *logger.handlers): one.setLevel("INFO")
deepspeed.init_distributed(dist_backend="gloo")
torch.manual_seed(7)
rows = [(torch.randn(2, 8), torch.randn(2, 1)) for _ in range(4)]

def loss_of(output, wanted):
    time.sleep(0.01)
    return torch.nn.functional.mse_loss(output, wanted)

def started(model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    engine, *_ = deepspeed.initialize(model=model, config=given.config, optimizer=optimizer)
    assert engine.zero_optimization_stage() == 1
    return engine

engine = started(torch.nn.Linear(8, 1))
for inputs, wanted in rows:
    engine.backward(loss_of(engine(inputs), wanted))
    engine.step()
engine = started(PipelineModule([torch.nn.Linear(8, 1)], num_stages=1, loss_fn=loss_of))
for _ in range(4): engine.train_batch(data_iter=iter(rows))
"""
CONFIG = {
    "train_micro_batch_size_per_gpu": 2,
    "steps_per_print": 1,
    "zero_optimization": {"stage": 1},
}


@pytest.fixture(name="port")
def _port() -> Iterator[str]:
    """A master port; DeepSpeed's ops leave their shared memory behind, whose names have it."""
    port = str(free_port())
    yield port
    for path in Path("/dev/shm").glob(f"deepspeed_*_{port}_*"):
        path.unlink()


def test_steps_loss_and_times_are_those_that_deepspeed_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: str
) -> None:
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    script, config = tmp_path / "train.py", tmp_path / "ds_config.json"
    script.write_text(TRAIN)
    config.write_text(json.dumps(CONFIG))
    done = quick(
        tmp_path, "--", "deepspeed", "--num_gpus", "2", "--master_port", port,
        str(script), "--config", str(config), timeout=1000,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    printed = re.findall(r"steps: (\d+) loss: ([\d.]+) iter time \(s\): ([\d.]+)", done.stdout)
    assert [step for step, _, _ in printed] == ["1", "2", "3", "4"]
    kept = (folder_of(tmp_path) / "steps.jsonl").read_text().splitlines()
    rows = [json.loads(row) for row in kept]
    pipeline = [(r["step"], r["loss"], r["seconds"]) for r in rows if "loss" in r]
    assert pipeline == [(int(step), float(loss), float(time)) for step, loss, time in printed]
    assert {r["step"] for r in rows if r.get("learning_rate") == 0.01} >= {1, 2, 3, 4}
    figures = record(tmp_path)["figures"]
    assert (figures["steps"], figures["loss"]) == (4, float(printed[-1][1]))
    assert figures["step_seconds"] > 0
    assert figures["samples_per_second"] > 0
