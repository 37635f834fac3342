"""What a real DeepSpeed engine holds, one rank: bytes of all storages, printed as JSON.

argv: a JSON file of {name: DeepSpeed config}, and where rank 0 writes {name: figures}. Every
storage that Python can reach is counted: after the backward pass, when the inner optimizer is
called, and between two steps. That is what a rank holds, whatever DeepSpeed calls it.
"""

import gc
import json
import os
import sys
import time
from typing import Any

import deepspeed
import torch

WIDTH = 256
INNER = 4 * WIDTH
BLOCKS = 4
OUT = 16


def live_bytes() -> int:
    """Bytes of all distinct storages."""
    gc.collect()
    seen: dict[int, int] = {}
    for thing in gc.get_objects():
        if not issubclass(type(thing), torch.Tensor):
            continue
        for tensor in (thing, thing.grad if thing.is_leaf else None):
            if tensor is not None:
                storage = tensor.untyped_storage()
                seen[storage.data_ptr()] = storage.nbytes()
    return sum(seen.values())


def settled_bytes() -> int:
    """What is held once all ranks are here: gloo's threads let go of what they have reduced."""
    torch.distributed.barrier()
    time.sleep(0.2)
    return live_bytes()


def network() -> Any:
    """Linear layers alone: next to no activations are kept."""
    torch.manual_seed(0)
    blocks = [
        torch.nn.Sequential(
            torch.nn.Linear(WIDTH, INNER), torch.nn.ReLU(), torch.nn.Linear(INNER, WIDTH)
        )
        for _ in range(BLOCKS)
    ]
    return torch.nn.Sequential(*blocks, torch.nn.Linear(WIDTH, OUT))


def one(config: "dict[str, Any]") -> "dict[str, int]":
    """Two steps under a config; state of the optimizer is made in the first."""
    before = live_bytes()
    engine, optimizer, _, _ = deepspeed.initialize(model=network(), config=config)
    seen: dict[str, int] = {"parameters": sum(p.numel() for p in network().parameters())}
    inner = optimizer
    while hasattr(inner, "optimizer"):
        inner = inner.optimizer
    original = inner.step

    def step(*args: Any, **kwargs: Any) -> Any:
        seen["step"] = live_bytes() - before
        return original(*args, **kwargs)

    inner.step = step
    width = torch.bfloat16 if config.get("bf16", {}).get("enabled") else torch.float32
    passes = config["gradient_accumulation_steps"]
    for index in range(2 * passes):
        data = torch.ones(config["train_micro_batch_size_per_gpu"], WIDTH, dtype=width)
        loss = engine(data).float().square().mean()
        engine.backward(loss)
        del loss, data
        if index == passes:
            seen["first backward"] = settled_bytes() - before
        if index == 2 * passes - 1:
            seen["backward"] = settled_bytes() - before
        engine.step()
    seen["resident"] = live_bytes() - before
    engine.destroy()
    return seen


def main() -> None:
    """All configs in one process: starting DeepSpeed costs more than the steps."""
    deepspeed.init_distributed()
    gc.collect()
    gc.freeze()  # what the imports made need not be looked at each time
    with open(sys.argv[1], encoding="utf-8") as file:
        configs = json.load(file)
    result = {name: one(config) for name, config in configs.items()}
    if os.environ["RANK"] == "0":
        with open(sys.argv[2], "w", encoding="utf-8") as file:
            json.dump(result, file)


main()
