"""Hugging Face Trainer behind a preflight: `torchrun --nproc_per_node 2 train_trainer.py`.

The callback is what matters; the rest is a model of one layer, so that the example runs anywhere.
"""

from __future__ import annotations

import tempfile

import dsdoctor
import torch
from transformers import Trainer, TrainerCallback, TrainingArguments


class PreflightCallback(TrainerCallback):
    """Looks before the first step; a confirmed failure ends the run with its cause."""

    def on_train_begin(self, args, state, control, **kwargs):
        config = args.deepspeed if isinstance(args.deepspeed, str) else None
        dsdoctor.preflight(config=config)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x, labels):
        return {"loss": torch.nn.functional.mse_loss(self.layer(x), labels)}


def main() -> None:
    data = [{"x": torch.randn(4), "labels": torch.randn(1)} for _ in range(8)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, max_steps=1, report_to="none", save_strategy="no"
        )
        Trainer(Model(), arguments, train_dataset=data, callbacks=[PreflightCallback()]).train()
    print("trained")


if __name__ == "__main__":
    main()
