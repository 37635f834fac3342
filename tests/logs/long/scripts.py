"""Training scripts of the long logs: small, whole, with the loggers and bars that people use."""

from __future__ import annotations

import json

HEAD = """\
import ctypes
import datetime
import logging
import mmap
import os
import signal
import sys
import time
import warnings

import torch
import torch.distributed as dist
from tqdm import tqdm

rank = int(os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0")))
attempt = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
form = f"[%(asctime)s] [%(levelname)s] [%(filename)s:%(lineno)d:%(funcName)s] [Rank {rank}] %(message)s"
logging.basicConfig(level=logging.INFO, format=form)
log = logging.getLogger("train")
"""

DDP = (
    HEAD
    + """
from torch.nn.parallel import DistributedDataParallel


class Net(torch.nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(width, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))

    def forward(self, x):
        return self.body(x)


class Tokens(torch.utils.data.Dataset):
    def __init__(self):
        self.rows = [{"input": torch.randn(16), "label": n % 4} for n in range(512)]

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        row = self.rows[index % 512]
        #ITEM#
        return row["input"], row["label"]


def lookup(batch, name):
    return {"inputs": batch}[name]


def main():
    #BEFORE#
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=#TIMEOUT#))
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = torch.utils.data.DataLoader(Tokens(), batch_size=4, num_workers=#WORKERS#)
    log.info("world size %d, %d parameters", dist.get_world_size(), sum(p.numel() for p in model.parameters()))
    #AFTER#
    bar = tqdm(total=100000, disable=rank != 0, mininterval=0, desc="train")
    for step, (x, y) in enumerate(loader, 1):
        if step > #STEPS#:
            break
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        bar.set_postfix(loss=f"{loss.item():.3f}")
        bar.update(1)
        if step % 4 == 0:
            log.info("step %d/100000 loss %.4f lr %.3e grad_norm %.3f", step, loss.item(), 1e-3, norm)
        time.sleep(0.05)
        #STEP#
    bar.close()
    dist.barrier()
    if rank == 0:
        log.info("training finished, model saved to /ckpt/final")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
"""
)

DEEPSPEED = (
    HEAD
    + """
import deepspeed

#TOP#


def lookup(batch, name):
    return {"inputs": batch}[name]


class Net(torch.nn.Module):
    def __init__(self, width=#WIDTH#):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(16, width), torch.nn.ReLU(), torch.nn.Linear(width, 4))

    def forward(self, x):
        return self.body(x)


def main():
    net = Net()
    #BEFORE#
    engine, _, _, _ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config="ds_config.json")
    dtype = next(engine.parameters()).dtype
    #AFTER#
    bar = tqdm(total=100000, disable=rank != 0, mininterval=0)
    for step in range(1, #STEPS# + 1):
        x = torch.randn(2, 16, dtype=dtype)
        y = torch.randint(0, 4, (2,))
        loss = torch.nn.functional.cross_entropy(engine(x).float(), y)
        engine.backward(loss)
        engine.step()
        bar.update(1)
        if step % 10 == 0:
            log.info("step %d loss %.4f", step, loss.item())
        #STEP#
    bar.close()
    engine.save_checkpoint(os.environ.get("CKPT", "/tmp/ckpt"), tag=f"step{step}")
    if rank == 0:
        log.info("training finished")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
"""
)

TRAINER = (
    HEAD
    + """
import transformers
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 14

    def __getitem__(self, index):
        length = 16
        #ITEM#
        ids = torch.randint(0, 64, (length,))
        return {"input_ids": ids, "labels": ids.clone()}


class Each(TrainerCallback):
    def on_step_end(self, args, state, control, **more):
        step = state.global_step
        #STEP#


def main():
    #BEFORE#
    args = TrainingArguments(
        output_dir="/tmp/ckpt/run", max_steps=#STEPS#, per_device_train_batch_size=4, logging_steps=5,
        dataloader_num_workers=#WORKERS#, use_cpu=True, ddp_backend="gloo", report_to=[], save_steps=#SAVE#,
        dataloader_pin_memory=False, #ARGS#
    )
    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=16, n_head=2, vocab_size=64, n_positions=32))
    trainer = Trainer(model=model, args=args, train_dataset=Tokens(), callbacks=[Each()])
    trainer.train()
    if rank == 0:
        print(trainer.state.log_history[-1])


if __name__ == "__main__":
    main()
"""
)

BASE: dict[str, object] = {
    "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 1,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
    "zero_optimization": {"stage": 2},
    "gradient_clipping": 1.0,
    "steps_per_print": 5,
    "wall_clock_breakdown": False,
}


def filled(text: str, **parts: object) -> str:
    """A script with lines put in at its marks; what is not given is the default."""
    values: dict[str, object] = {
        "STEPS": 60, "WORKERS": 0, "TIMEOUT": 60, "WIDTH": 64, "SAVE": 1000, "ARGS": "",
    } | {name.upper(): value for name, value in parts.items()}  # fmt: skip
    rows = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        bare = line.strip()
        if bare in {"#BEFORE#", "#AFTER#", "#STEP#", "#ITEM#", "#TOP#"}:
            put = str(values.get(bare.strip("#"), "")).strip("\n")
            if not put and bare == "#STEP#":
                put = "pass"
            rows += [indent + row for row in put.split("\n") if row]
            continue
        for name, value in values.items():
            line = line.replace(f"#{name}#", str(value))
        rows.append(line)
    return "\n".join(rows)


def ddp(**parts: object) -> str:
    return filled(DDP, **parts)


def deepspeed(**parts: object) -> str:
    return filled(DEEPSPEED, **parts)


def trainer(**parts: object) -> str:
    return filled(TRAINER, **parts)


def config(**changes: object) -> str:
    merged = {**BASE, **changes}
    return json.dumps({key: value for key, value in merged.items() if value is not None}, indent=2)
