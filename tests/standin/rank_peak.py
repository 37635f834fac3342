"""Peaks of torch's caching allocator on one rank of N, with a real DeepSpeed engine.

    python rank_peak.py '[{"model": {…}, "stage": 2, "world": 8, …}, …]'

Prints for each case `peak ALLOCATED RESERVED` in bytes: the peak of a step, and what the allocator
holds after it. A case has a `model` in the words of transformers' config.json, whatever its type:
the class that is trained and what it is given are those of `recommend --measure`. `rank` says which
of the ranks it is (0): each has another part of the gradients. Runs with STANDIN_MODE=meta (shapes only) and STANDIN_NCCL_SOLO=1 (the other ranks do not exist).
"""

from __future__ import annotations

import gc
import inspect
import json
import os
import sys
from typing import Any

from dsdoctor.probes.children import measure_model


def engine_of(case: dict[str, Any]) -> Any:
    """The model in bf16 on the GPU, in an engine of this ZeRO stage."""
    import deepspeed
    import torch
    import transformers

    config = measure_model.make_config(transformers, case["model"])
    config.use_cache = False
    kind = measure_model.head_of(transformers, config)
    attention = "eager" if case["attention"] == "eager" else "sdpa"
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        try:
            model = kind._from_config(config, attn_implementation=attention)
        except ValueError:  # the type has no such attention
            model = kind._from_config(config, attn_implementation="eager")
    torch.set_default_dtype(torch.float32)
    model.train()
    if case["checkpointing"]:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    zero = {
        "stage": case["stage"], "reduce_bucket_size": case["bucket"], "overlap_comm": True,
        "allgather_bucket_size": case["bucket"], "contiguous_gradients": True,
    }  # fmt: skip
    engine, *_ = deepspeed.initialize(
        model=model,
        model_parameters=model.parameters(),
        config={
            "train_micro_batch_size_per_gpu": case["micro_batch"],
            "gradient_accumulation_steps": case["accumulation"],
            "bf16": {"enabled": True},
            "gradient_clipping": 1.0,
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
            "zero_optimization": zero,
        },
        dist_init_required=False,
    )
    return engine


def peak_of(case: dict[str, Any]) -> tuple[int, int]:
    """The peak of the second step above what was there before, and what is reserved after it."""
    import deepspeed.comm
    import torch

    # NCCL's identifier comes from rank 0, so only DeepSpeed takes this process for another
    deepspeed.comm.get_rank = lambda *_, **__: case.get("rank", 0)
    before = torch.cuda.memory_allocated()
    engine = engine_of(case)
    size = {"batch": case["micro_batch"], "sequence": case["sequence"], "mask": "none"}
    given = measure_model.inputs_of(
        torch, {**size, "dtype": "bfloat16", "device": "cuda"}, engine.module.config
    )
    accepted = inspect.signature(engine.module.forward).parameters
    given = {name: value.cuda() for name, value in given.items() if name in accepted}
    for _ in range(2):
        torch.cuda.reset_peak_memory_stats()
        for _ in range(case["accumulation"]):
            engine.backward(engine(**given)["loss"])
            engine.step()
    peak, reserved = torch.cuda.max_memory_allocated() - before, torch.cuda.memory_reserved()
    engine.destroy()
    return int(peak), int(reserved)


def main() -> None:
    """One case after another, all of one world size."""
    cases = json.loads(sys.argv[1])
    world = cases[0]["world"]
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(world))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    import torch

    torch.distributed.init_process_group(
        "nccl", store=torch.distributed.HashStore(), rank=0, world_size=world
    )
    failed = 0
    for number, case in enumerate(cases):
        try:
            print("peak", *peak_of(case), flush=True)
        except Exception as error:  # noqa: BLE001  # the other cases are worth their time
            failed = 1
            print(f"failed {number} {type(error).__name__}: {error}"[:600], flush=True)
            del error
        gc.collect()
        torch.cuda.empty_cache()
    os._exit(failed)  # the other ranks that a teardown waits for do not exist


if __name__ == "__main__":
    main()
