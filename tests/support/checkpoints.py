"""Real DeepSpeed checkpoints, made on two CPU ranks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys, torch, deepspeed

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(16, 16)
        self.second = torch.nn.Linear(16, 1)

    def forward(self, x):
        return self.second(torch.relu(self.first(x))).float().mean()

for stage in map(int, sys.argv[2:]):
    model = Model()
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": stage},
        "optimizer": {"type": "AdamW", "params": {"torch_adam": True}},
    }
    engine, _, _, _ = deepspeed.initialize(
        model=model, model_parameters=model.parameters(), config=config, dist_init_required=True
    )
    for _ in range(2):
        engine.backward(engine(torch.randn(2, 16).bfloat16()))
        engine.step()
    engine.save_checkpoint(sys.argv[1] + "/z" + str(stage))
torch.distributed.barrier()
torch.distributed.destroy_process_group()
"""


def make(folder: Path, stages: tuple[int, ...], port: int, ranks: int = 2) -> dict[int, Path]:
    """A checkpoint of each stage, written by so many ranks."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "train.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--nproc_per_node",
            str(ranks),
            "--master_port",
            str(port),
            str(script),
            str(folder),
            *map(str, stages),
        ],
        env={**os.environ, "DS_ACCELERATOR": "cpu", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    found = {stage: folder / f"z{stage}" for stage in stages}
    # gloo may abort while it tears down; what counts is that every checkpoint was finished
    assert all((path / "latest").exists() for path in found.values()), done.stderr[-2000:]
    return found
