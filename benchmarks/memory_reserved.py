"""What torch's allocator reserves for a step, beside what it allocates and what is predicted.

    bash tests/run.sh standin --collect-only   # makes the environment
    .venv-standin/bin/python benchmarks/memory_reserved.py [--only MODEL]

nvidia-smi shows reserved memory: blocks that the allocator keeps for later are part of it, and it
gives them back before a GPU runs out of memory. Each case is one rank of a real DeepSpeed engine
under torch's real allocator, on shapes alone (tests/standin), with the settings of rows of
published.json whose figure is what nvidia-smi shows.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from dsdoctor.recommend import memory
from dsdoctor.recommend.memory import GIB
from dsdoctor.recommend.models import PRESETS, from_config, written
from dsdoctor.recommend.setting import Setting
from tests.standin import bed
from tests.standin.conftest import machine

#: What torch does not allocate, and the allowance for its cache.
OUTSIDE = ("CUDA context", "NCCL", "workspaces", "fragmentation")
#: Model, stage, ranks, micro-steps, tokens, and the published figure in GiB.
CASES = (
    ("llama-3-8b", 2, 8, 1, 2048, "51.2, MiniCPM-Llama3-V-2.5 (0.5 billion more, one image)"),
    ("llama-3-8b", 2, 4, 1, 2048, "75.0, MiniCPM-Llama3-V-2.5"),
    ("Qwen-1.8B", 3, 1, 2, 512, "40.5"),
    ("Qwen-1.8B", 3, 1, 2, 4096, "43.9"),
    ("Qwen-7B", 3, 2, 2, 256, "64.8"),
    ("Qwen-7B", 3, 2, 2, 1024, "75.4"),
)


def main() -> None:
    """Prints a table, a row when it is known: each takes up to two minutes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only")
    args = parser.parse_args()
    published = json.loads((ROOT / "benchmarks" / "published.json").read_text(encoding="utf-8"))
    print("| model | ZeRO | ranks | tokens | predicted | allocated | reserved | published |")
    print("|---|---|---|---|---|---|---|---|")
    for name, stage, world, passes, tokens, figure in CASES:
        if args.only not in (None, name):
            continue
        known = published["models"].get(name)
        model = from_config(known, name) if known else PRESETS[name]
        setting = Setting(
            stage=stage, world=world, accumulation=passes, sequence=tokens, checkpointing=True
        )
        case = {**dataclasses.asdict(setting), "model": written(model)}
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, ROOT / "tests/standin/rank_peak.py", json.dumps([case])],
                env=bed.environment(
                    machine(gpus=1, memory=140 * GIB),
                    Path(folder) / "bed",
                    STANDIN_MODE="meta",
                    STANDIN_NCCL_SOLO="1",
                    PYTORCH_NVML_BASED_CUDA_CHECK="1",
                ),
                capture_output=True,
                text=True,
                check=True,
            )
        found = next(line for line in done.stdout.splitlines() if line.startswith("peak "))
        figures = json.loads(found.split(maxsplit=2)[2])
        allocated, reserved = figures["allocated"], figures["reserved"]
        need = memory.estimate(model, setting)
        predicted = memory.peak(item for item in need.gpu if item.name not in OUTSIDE)
        sizes = " | ".join(f"{size / GIB:.1f}" for size in (predicted, allocated, reserved))
        print(f"| {name} | {stage} | {world} | {tokens} | {sizes} | {figure} |", flush=True)


if __name__ == "__main__":
    main()
