"""Training scripts the scenarios share: small, whole, and like what people write."""

from __future__ import annotations

import json
from collections.abc import Mapping

Json = Mapping[str, object]

BASE: dict[str, object] = {
    "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 1,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
    "steps_per_print": 1,
}

TRAIN = """\
import argparse
import json
import os

import torch

import deepspeed

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=-1)
parser.add_argument("--steps", type=int, default=3)
parser = deepspeed.add_config_arguments(parser)
args = parser.parse_args()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))

    def forward(self, x):
        return self.body(x)


net = Net()
#BEFORE#
engine, optimizer, _, _ = deepspeed.initialize(args=args, model=net, model_parameters=net.parameters())
rank = torch.distributed.get_rank()
dtype = next(engine.parameters()).dtype
#AFTER#
for step in range(args.steps):
    x = torch.randn(2, 16, dtype=dtype)
    y = torch.randint(0, 4, (2,))
    #STEP#
    loss = torch.nn.functional.cross_entropy(engine(x).float(), y)
    engine.backward(loss)
    engine.step()
    if rank == 0:
        print(f"step {step} loss {loss.item():.4f}", flush=True)
#END#
if rank == 0:
    print("training done")
torch.distributed.barrier()
torch.distributed.destroy_process_group()
"""

GLOO = """\
import datetime
import os
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=10))
rank = dist.get_rank()
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    #STEP#
    opt.zero_grad()
    loss = net(torch.randn(2, 16)).square().mean()
    loss.backward()
    opt.step()
    print(f"[rank {rank}] step {step} loss {loss.item():.4f}", flush=True)
dist.destroy_process_group()
"""

#: The Trainer of transformers, as its own examples use it.
TRAINER = """\
import os
import signal
from dataclasses import dataclass, field

import torch
from datasets import load_dataset
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    HfArgumentParser,
    Trainer,
    TrainingArguments,
)


@dataclass
class ScriptArguments:
    model_name_or_path: str = field(default="model")
    train_file: str = field(default="train.jsonl")


def main():
    parser = HfArgumentParser((ScriptArguments, TrainingArguments))
    args, training_args = parser.parse_args_into_dataclasses()
    tokenizer = AutoTokenizer.from_pretrained(args.model_name_or_path)
    model = AutoModelForCausalLM.from_pretrained(args.model_name_or_path)
    data = load_dataset("json", data_files=args.train_file, split="train")
    data = data.map(lambda row: tokenizer(row["text"]), remove_columns=data.column_names)
    collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    trainer = Trainer(model=model, args=training_args, train_dataset=data, data_collator=collator)
    trainer.train(resume_from_checkpoint=training_args.resume_from_checkpoint)
    trainer.save_model()


if __name__ == "__main__":
    main()
"""

#: A loop of accelerate.
OPTIMIZER_STEPS = """\
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator()
net = torch.nn.Linear(16, 4)
data = TensorDataset(torch.randn(64, 16), torch.randint(0, 4, (64,)))
loader = DataLoader(data, batch_size=2)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
for x, y in loader:
    loss = torch.nn.functional.cross_entropy(net(x), y)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
"""


def train(*, before: str = "", after: str = "", step: str = "", end: str = "") -> str:
    """The DeepSpeed training script, with lines put in at the four marks."""
    text = TRAIN.replace("#BEFORE#", before).replace("#AFTER#", after)
    return text.replace("#STEP#", step.replace("\n", "\n    ")).replace("#END#", end)


def gloo(step: str = "") -> str:
    """The plain torch.distributed script, with lines put into its loop."""
    return GLOO.replace("#STEP#", step.replace("\n", "\n    "))


def config(changes: Json | None = None, **top: object) -> str:
    """The DeepSpeed JSON with top-level changes (a value of None removes the key)."""
    merged = {**BASE, **(changes or {}), **top}
    return json.dumps({key: value for key, value in merged.items() if value is not None}, indent=2)
