"""Two ranks of torch.distributed without an engine, which start in seconds; see `engine_job.py`.

The same arguments as there, for the ways to die that need no engine.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from pathlib import Path

import torch
import torch.distributed as dist

LAST_STEP = 600
CONFIG = {"lr": 1e-5}
parser = argparse.ArgumentParser()
parser.add_argument("--local_rank")  # DeepSpeed's launcher adds it
parser.add_argument("--output_dir", default="")
parser.add_argument("how")
given = parser.parse_args()


def say(text: str) -> None:
    """A whole line in one write: all ranks share a pipe, and an unbuffered `print` needs two."""
    os.write(1, f"{text}\n".encode())


def load_next_batch() -> None:
    """Of a rank whose data never comes."""
    time.sleep(600)


def samples() -> int:
    """How often the job was sampled."""
    (path,) = Path(os.environ["DSDOCTOR_RUNS"]).glob("*/samples.jsonl")
    return path.read_text().count("\n")


def save() -> None:
    """Writes 16 MiB as a checkpoint, and says so as Hugging Face's Trainer does."""
    folder = Path(given.output_dir, f"checkpoint-{dist.get_rank()}")
    say(f"Saving model checkpoint to {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    torch.save({"weights": torch.zeros(4 << 20)}, folder / "weights.pt")
    say(f"rank {dist.get_rank()} has saved")


def meet_its_end() -> None:
    """What happens to rank 1 while rank 0 waits for it."""
    if dist.get_rank() != 1:
        return
    if given.how == "key":
        CONFIG["missing"]
    if given.how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if given.how == "hang":
        load_next_batch()
    kept = []
    while given.how == "memory":
        kept.append(bytearray(64 << 20))
        before = samples()
        while samples() == before:  # it is seen how memory fills
            time.sleep(0.02)


def main() -> None:
    dist.init_process_group("gloo")
    asked = torch.zeros(1)
    if given.how == "term":
        signal.signal(signal.SIGTERM, lambda *_: asked.fill_(1))
    for step in range(LAST_STEP if given.how in ("term", "ctrl-c") else 4):
        if step == 2:
            meet_its_end()
        loss = float("nan") if given.how == "nan" and step > 1 else 1 / (step + 1)
        anybody = asked.clone()
        dist.all_reduce(anybody)
        say(f"{{'loss': {loss}, 'learning_rate': 1e-05, 'epoch': {step}}}")
        say(f"rank {dist.get_rank()} did step {step}")
        time.sleep(0.1)
        if anybody or (given.how == "disk" and step == 2):
            save()
            break
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
