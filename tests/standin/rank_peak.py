"""Peaks of torch's caching allocator on one rank of N, with a real DeepSpeed engine.

    python rank_peak.py '[{"model": {…}, "stage": 2, "world": 8, …}, …]'

Prints for each case `peak ALLOCATED RESERVED` in bytes: the peak of a step, and what the allocator
holds after it. Runs with STANDIN_MODE=meta (shapes only) and STANDIN_NCCL_SOLO=1 (the other ranks do not exist).
"""

from __future__ import annotations

import gc
import json
import os
import sys
from typing import Any


def engine_of(case: dict[str, Any]) -> Any:
    """The model in bf16 on the GPU, in an engine of this ZeRO stage."""
    import deepspeed
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(**case["model"], use_cache=False)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
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
    import torch

    before = torch.cuda.memory_allocated()
    engine = engine_of(case)
    ids = torch.zeros(case["micro_batch"], case["sequence"], dtype=torch.long, device="cuda")
    for _ in range(2):
        torch.cuda.reset_peak_memory_stats()
        for _ in range(case["accumulation"]):
            engine.backward(engine(input_ids=ids, labels=ids).loss)
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
    for case in cases:
        print("peak", *peak_of(case), flush=True)
        gc.collect()
        torch.cuda.empty_cache()
    os._exit(0)  # the other ranks that a teardown waits for do not exist


if __name__ == "__main__":
    main()
