"""accelerate or torchrun behind a preflight.

accelerate launch --num_processes 2 train_accelerate.py
torchrun --nproc_per_node 2 train_accelerate.py
"""

from __future__ import annotations

import dsdoctor

dsdoctor.preflight()  # before torch: one process of each node checks, the others continue

import torch  # noqa: E402
from accelerate import Accelerator  # noqa: E402


def main() -> None:
    accelerator = Accelerator()
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    loss = model(torch.ones(2, 4)).square().mean()
    accelerator.backward(loss)
    optimizer.step()
    accelerator.print(f"trained on {accelerator.num_processes} processes")
    accelerator.wait_for_everyone()  # a rank that leaves early can make gloo abort the others
    accelerator.end_training()


if __name__ == "__main__":
    main()
