"""Host memory of offload: what real engines allocate and pin, beside what `recommend` says.

    python benchmarks/memory_host.py [--only 40M] >> benchmarks/memory.md

Ranks run on this machine's CPUs (torch's CPU build pins nothing, so `pin_memory` is answered by the
rule of torch's caching host allocator: tests/recommend/children/states.py). A row takes some
20 s and up to 2.5 GiB. The environment needs torch, deepspeed and transformers.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime as dt
import gc
import json
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MB = 1e6
#: Llama-like models; `sizes` have many matrices of less than 32 MiB, as small models have.
MODELS: dict[str, dict[str, int]] = {
    "12M": {"hidden_size": 256, "num_hidden_layers": 8, "vocab_size": 8192},
    "50M": {"hidden_size": 512, "num_hidden_layers": 8, "vocab_size": 16384},
    "110M": {"hidden_size": 768, "num_hidden_layers": 12, "vocab_size": 16384},
}
#: Model, ZeRO stage, offload, ranks, accumulation.
CASES = (
    ("12M", 3, "optimizer+parameters", 1, 1),
    ("50M", 1, "optimizer", 2, 2),
    ("50M", 2, "optimizer", 2, 2),
    ("50M", 3, "optimizer", 2, 1),
    ("50M", 3, "optimizer+parameters", 1, 1),
    ("50M", 3, "optimizer+parameters", 2, 1),
    ("110M", 2, "optimizer", 2, 1),
    ("110M", 3, "optimizer+parameters", 2, 1),
)
HEAD = """
## Host memory of offload

Made on {day} by `python benchmarks/memory_host.py`: DeepSpeed {deepspeed}, CPU ranks, bf16, AdamW.
MB of all ranks. *Storages*: everything that Python can reach between two steps, weights, gradients
and buffers of the device among them, which for CPU ranks is host memory too. *Pinned*: blocks that
torch's caching host allocator takes for what the engine pins. *No cache*: the prediction without
the blocks that DeepSpeed pins for single weights, frees, and torch keeps, as it was before.

| model | ZeRO | offload | ranks | passes | storages | said | | pinned | said | | no cache |
|---|---|---|---|---|---|---|---|---|---|---|---|"""


def config_of(name: str) -> dict[str, Any]:
    """The Hugging Face config of a model."""
    sizes = MODELS[name]
    hidden = sizes["hidden_size"]
    heads = hidden // 64
    return {
        "model_type": "llama",
        "tie_word_embeddings": False,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "intermediate_size": 4 * hidden if hidden < 768 else 2048,
        "max_position_embeddings": 1024,
        **sizes,
    }


def train(path: str) -> None:
    """One rank: two steps, then bytes of storages and of pinned blocks as one line of JSON."""
    import deepspeed
    import torch
    from deepspeed.accelerator import get_accelerator
    from transformers import AutoConfig, AutoModelForCausalLM

    sys.argv = [sys.argv[0]]
    sys.path.insert(0, str(ROOT))
    from tests.recommend.children import states

    case = json.loads(Path(path).read_text(encoding="utf-8"))
    deepspeed.init_distributed()
    pins = states.Pinned()
    get_accelerator().pin_memory = pins.pin
    config = AutoConfig.for_model(**case["model"])
    before = states.live_bytes()
    with deepspeed.zero.Init(config_dict_or_path=case["config"], enabled=case["partitioned"]):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.config.use_cache = False
    engine, *_ = deepspeed.initialize(model=model, config=case["config"])
    count = sum(getattr(one, "ds_numel", one.numel()) for one in model.parameters())
    for _ in range(2 * case["config"]["gradient_accumulation_steps"]):
        ids = torch.randint(0, config.vocab_size, (1, 64))
        loss = engine(input_ids=ids, labels=ids).loss
        engine.backward(loss)
        del loss
        engine.step()
    gc.collect()
    seen = {
        "parameters": count,
        "storages": states.live_bytes() - before,
        "pinned": pins.reserved,
        "deepspeed": deepspeed.__version__,
    }
    torch.distributed.barrier()
    print("RANK " + json.dumps(seen), flush=True)
    engine.destroy()


def measured(name: str, setting: Any, folder: Path) -> list[dict[str, Any]]:
    """What each rank of a case says."""
    from dsdoctor.host import LocalHost
    from dsdoctor.recommend import output

    config = output.ds_config(
        setting,
        optimizer="adamw",
        accumulation=setting.accumulation,
        global_batch=setting.world * setting.accumulation,
    )
    case = {"model": config_of(name), "config": config, "partitioned": setting.stage == 3}
    path = folder / "case.json"
    path.write_text(json.dumps(case), encoding="utf-8")
    ranks = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(setting.world))
    done = LocalHost().run(
        [sys.executable, *ranks, str(Path(__file__).resolve()), "--rank-of", str(path)],
        timeout=600,
        env={"DS_ACCELERATOR": "cpu", "OMP_NUM_THREADS": "1"},
    )
    lines = [line for line in done.stdout.decode().splitlines() if line.startswith("RANK ")]
    if len(lines) != setting.world:
        raise SystemExit(done.stderr[-3000:].decode())
    return [json.loads(line.removeprefix("RANK ")) for line in lines]


def row(case: tuple[str, int, str, int, int], folder: Path) -> tuple[str, str]:
    """A line of the table, and the release of DeepSpeed."""
    from dsdoctor.recommend import memory
    from dsdoctor.recommend.models import from_config
    from dsdoctor.recommend.setting import Setting

    name, stage, offload, world, accumulation = case
    setting = Setting(
        stage=stage,
        offload=offload,
        world=world,
        accumulation=accumulation,
        sequence=64,
        bucket=1_000_000,
        max_live=1_000_000,
        overlap=False,
    )
    seen = measured(name, setting, folder)
    model = from_config(config_of(name), name)
    pinned_names = {"gradients in fp32", "16-bit staging", "parameters", "accumulated gradients"}
    pinned_names |= {"gradient buffer", "pinned rounding", "pinned cache"}
    if stage < 3:
        pinned_names.add("master weights")
    host = memory.estimate(model, setting).host
    pinned = sum(item.bytes for item in host if item.name in pinned_names)
    cache = sum(item.bytes for item in host if item.name == "pinned cache")
    here = memory.estimate(model, dataclasses.replace(setting, on_gpu=False)).host
    resident = sum(
        item.bytes
        for item in here
        if item.phase == "resident"
        and not item.name.startswith(("processes", "boundary", "gathered"))
    )
    storages, blocks = (sum(one[key] for one in seen) for key in ("storages", "pinned"))
    cells = (
        *(name, stage, offload, world, accumulation),
        *(f"{storages / MB:.0f}", f"{resident / MB:.0f}", f"{resident / storages:.2f}"),
        *(f"{blocks / MB:.0f}", f"{pinned / MB:.0f}", f"{pinned / blocks:.2f}"),
        f"{(pinned - cache) / blocks:.2f}",
    )
    return "| " + " | ".join(map(str, cells)) + " |", seen[0]["deepspeed"]


def main() -> None:
    """Prints the section of the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only")
    parser.add_argument("--rank-of")
    args = parser.parse_args()
    if args.rank_of:
        train(args.rank_of)
        return
    import tempfile

    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    with tempfile.TemporaryDirectory() as folder:
        head = HEAD
        for case in CASES:
            if args.only in (None, case[0]):
                line, release = row(case, Path(folder))
                day = dt.datetime.now(dt.UTC).date()
                if head:
                    print(head.format(day=day, deepspeed=release))
                    head = ""
                print(line, flush=True)


if __name__ == "__main__":
    main()
