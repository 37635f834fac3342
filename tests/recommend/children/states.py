"""What a real DeepSpeed engine holds, one rank: bytes of all storages, printed as JSON.

argv: a JSON file of {name: DeepSpeed config}, and where rank 0 writes {name: figures}. Every
storage that Python can reach is counted: after the backward pass, when the inner optimizer is
called, and between two steps. That is what a rank holds, whatever DeepSpeed calls it.
"""

import copy
import gc
import json
import os
import sys
import time
import weakref
from typing import Any

import deepspeed
import torch
from deepspeed.accelerator import get_accelerator
from storages import Made  # type: ignore[import-not-found]  # the script beside this one

WIDTH = 256
INNER = 4 * WIDTH
BLOCKS = 4
OUT = 16
#: DeepSpeed replaces it for good with the first model of ZeRO-3.
LINEAR = torch.nn.functional.linear


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


class Pinned:
    """Blocks that torch's caching host allocator would take for what DeepSpeed pins.

    torch built for CPUs pins nothing. The rule is that of CachingHostAllocator.h: a request takes a
    block of the next power of two, a free one of that size if there is one, and none is given back.
    """

    def __init__(self) -> None:
        self.reserved = 0
        self.free: dict[int, int] = {}

    def pin(self, tensor: Any, make_copy: bool = True, match_shape: bool = True) -> Any:
        """In place of `pin_memory`: a copy whose block is counted."""
        block = 1 << max(0, tensor.nbytes - 1).bit_length()
        if self.free.get(block):
            self.free[block] -= 1
        else:
            self.reserved += block
        pinned = tensor.clone()
        weakref.finalize(pinned.untyped_storage(), self.freed, block)
        return pinned

    def freed(self, block: int) -> None:
        """Keeps a block for the next request of its size."""
        self.free[block] = self.free.get(block, 0) + 1


class Experts(torch.nn.Module):  # type: ignore[misc]
    """Weights of all experts in one tensor, of which `linear` gets views (transformers 5)."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = torch.nn.Parameter(torch.randn(BLOCKS, WIDTH, WIDTH) / WIDTH)

    def forward(self, data: Any) -> Any:
        """Each expert in turn."""
        for number in range(BLOCKS):
            data = torch.nn.functional.linear(data, self.weights[number])
        return data


def kept_after_forward(model: Any, config: "dict[str, Any]", *, wrapped: bool) -> int:
    """Bytes that a forward pass of ZeRO-3 leaves behind, activations of one row among them."""
    config = copy.deepcopy(config)
    config["zero_optimization"]["memory_efficient_linear"] = wrapped
    torch.nn.functional.linear = LINEAR
    engine, *_ = deepspeed.initialize(model=model, config=config)
    data = torch.ones(1, WIDTH, dtype=torch.bfloat16)
    for _ in range(2):  # the first pass records the order of modules
        with Made() as made:
            loss = engine(data).float().square().mean()
            kept: int = made.bytes
        engine.backward(loss)
        del loss
        engine.step()
    engine.destroy()
    return kept


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
    pins = Pinned()
    original_pin = get_accelerator().pin_memory
    if any(
        section.get("pin_memory")
        for name, section in config["zero_optimization"].items()
        if name.startswith("offload")
    ):
        get_accelerator().pin_memory = pins.pin
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
    seen["pinned"] = pins.reserved
    get_accelerator().pin_memory = original_pin
    engine.destroy()
    return seen


def main() -> None:
    """All configs in one process: starting DeepSpeed costs more than the steps."""
    deepspeed.init_distributed()
    gc.collect()
    gc.freeze()  # what the imports made need not be looked at each time
    with open(sys.argv[1], encoding="utf-8") as file:
        configs = json.load(file)
    plain = configs.pop("gathered")
    result: dict[str, Any] = {name: one(config) for name, config in configs.items()}
    linears = 2 * sum(p.numel() for p in network().parameters() if p.dim() > 1)
    linears -= 2 * WIDTH * INNER  # the first one's input needs no gradient
    experts = 2 * sum(p.numel() for p in Experts().parameters())
    result["gathered"] = {
        "linears": linears,
        "experts": experts,
        "wrapped": kept_after_forward(network(), plain, wrapped=True),
        "not wrapped": kept_after_forward(network(), plain, wrapped=False),
        "views": kept_after_forward(Experts(), plain, wrapped=True),
    }
    if os.environ["RANK"] == "0":
        with open(sys.argv[2], "w", encoding="utf-8") as file:
            json.dump(result, file)


if __name__ == "__main__":
    main()
