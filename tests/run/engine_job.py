"""A training job on CPUs with DeepSpeed's own engines (ZeRO-1); an argument says how it goes.

For any launcher that sets RANK, WORLD_SIZE and MASTER_ADDR. `well` and `nan` end with status 0;
`key`, `kill`, `memory` and `hang` happen to rank 1; `ctrl-c` and `term` train until somebody ends
the job; `disk` saves a large checkpoint.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.pipe import PipelineModule
from deepspeed.utils import logger

CONFIG = {
    "train_micro_batch_size_per_gpu": 2,
    "steps_per_print": 1,
    "zero_optimization": {"stage": 1},
}
#: A layer of so many rows and columns has 4 MiB of parameters: its checkpoint fills a small disk.
LARGE = 1024
#: A job that nobody ends stops by itself after so many steps.
LAST_STEP = 600
parser = argparse.ArgumentParser()
parser.add_argument("--local_rank")  # DeepSpeed's launcher adds it
parser.add_argument("--output_dir", default="", help="where SIGTERM or `disk` save a checkpoint")
parser.add_argument("how")
given = parser.parse_args()
how = given.how
calls = 0


def loss_of(output: Any, wanted: Any) -> Any:
    global calls  # noqa: PLW0603  # a script
    calls += 1
    time.sleep(0.2)
    if how == "key" and calls == 6 and dist.get_rank() == 1:
        CONFIG["missing"]
    factor = float("nan") if how == "nan" and calls > 6 else 1.0
    return torch.nn.functional.mse_loss(output, wanted) * factor


def started(model: Any) -> Any:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    engine, *_ = deepspeed.initialize(model=model, config=CONFIG, optimizer=optimizer)
    assert engine.zero_optimization_stage() == 1
    return engine


def answer_a_request_for_a_dump() -> None:
    """What NCCL's monitor thread does, which Gloo does not have; the dump itself is torch's own."""
    rank = dist.get_rank()
    pipe = Path(f"{os.environ['TORCH_NCCL_DEBUG_INFO_PIPE_FILE']}{rank}.pipe")
    os.mkfifo(pipe)
    if pipe.read_bytes():
        dump = torch._C._distributed_c10d._dump_fr_trace()
        Path(f"{os.environ['TORCH_FR_DUMP_TEMP_FILE']}{rank}").write_bytes(dump)


def samples() -> int:
    """How often the job was sampled."""
    (path,) = Path(os.environ["DSDOCTOR_RUNS"]).glob("*/samples.jsonl")
    return path.read_text().count("\n")


def load_next_batch() -> None:
    """Of a rank whose data never comes."""
    time.sleep(600)


def meet_its_end() -> None:
    """What happens to rank 1 before its third step, while rank 0 waits for its gradients."""
    if dist.get_rank() != 1:
        return
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "hang":
        load_next_batch()
    kept = []
    while how == "memory":
        kept.append(bytearray(64 << 20))
        before = samples()
        while samples() == before:  # it is seen how memory fills
            time.sleep(0.02)


def say(text: str) -> None:
    """A whole line in one write: all ranks share a pipe, and an unbuffered `print` needs two."""
    os.write(1, f"{text}\n".encode())


def train(engine: Any, rows: list[tuple[Any, Any]]) -> None:
    for inputs, wanted in rows:
        engine.backward(loss_of(engine(inputs), wanted))
        engine.step()


def train_until_ended(engine: Any, rows: list[tuple[Any, Any]]) -> None:
    """As jobs do that a scheduler may end: SIGTERM asks for a checkpoint after this step."""
    asked = torch.zeros(1)
    if how == "term":
        signal.signal(signal.SIGTERM, lambda *_: asked.fill_(1))
    for step in range(LAST_STEP):
        train(engine, rows[:1])
        say(f"rank {dist.get_rank()} did step {step}")
        anybody = asked.clone()
        dist.all_reduce(anybody)
        if anybody:
            engine.save_checkpoint(given.output_dir)
            say(f"rank {dist.get_rank()} has saved")
            return


def main() -> None:
    for one in (logger, *logger.handlers):
        one.setLevel("INFO")
    deepspeed.init_distributed(dist_backend="gloo")
    torch.manual_seed(7)
    width = LARGE if how == "disk" else 8
    rows = [(torch.randn(2, width), torch.randn(2, 1)) for _ in range(6)]
    if how == "hang":
        threading.Thread(target=answer_a_request_for_a_dump, daemon=True).start()
    layers = [torch.nn.Linear(width, width), torch.nn.Linear(width, 1)]
    engine = started(torch.nn.Sequential(*layers))
    train(engine, rows[:2])
    if how in ("well", "nan", "key"):
        engine = started(PipelineModule(layers, num_stages=1, loss_fn=loss_of))
        for _ in range(6):
            engine.train_batch(data_iter=iter(rows))
    elif how in ("ctrl-c", "term"):
        train_until_ended(engine, rows)
    elif how == "disk":
        engine.save_checkpoint(given.output_dir)
    else:
        meet_its_end()
        train(engine, rows[2:])
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
