"""Does what `recommend` plans run? Each plan in a real DeepSpeed engine on a GPU of that size.

    bash tests/run.sh standin --collect-only   # makes the environment
    .venv-standin/bin/pip install peft bitsandbytes liger-kernel
    .venv-standin/bin/python benchmarks/memory_fits.py [--only 3,4] [--draw 1] > rows

Plans of presets (`memory_fits.json`), drawn over models, GPUs (16 to 80 GiB), ranks, adapters,
batches and objectives, of which those that fit are kept. The engine gets the DeepSpeed config that
the plan writes, and trains three steps as one rank of all of them under torch's real caching
allocator, on shapes (tests/standin). The device has the planned memory, less what is not real
there and yet planned for: NCCL and cuBLAS's workspaces. Its CUDA context takes what the plan
counts. So a plan whose memory is too small, or is fragmented, ends as on a GPU: with torch's
out-of-memory error. Plans that offload more than 4 GiB for each rank are left out: what is
offloaded is real here.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.memory_sweep import setting_of
from dsdoctor.model.launch_plan import LaunchPlan
from dsdoctor.recommend.device import CUDA_CONTEXT, NCCL_BYTES, WORKSPACE
from dsdoctor.recommend.machine import machine_of
from dsdoctor.recommend.memory import GIB
from dsdoctor.recommend.models import PRESETS, written
from dsdoctor.recommend.options import PlanOptions
from dsdoctor.recommend.planning import recommend
from dsdoctor.recommend.shape import ModelShape
from tests.nvml import fakenvml
from tests.standin import bed
from tests.standin.conftest import machine

#: The draws: drawn by seed from what fits, written down before any of them was run.
CASES = Path(__file__).with_suffix(".json")
STEPS = 3


@dataclasses.dataclass(frozen=True)
class Case:
    """A plan that was asked for."""

    model: ModelShape
    gib: int
    ranks: int
    options: PlanOptions

    @property
    def words(self) -> str:
        """What differs from a default plan for full training."""
        asked = self.options
        words = [] if asked.finetune == "full" else [asked.finetune]
        words += [f"global batch {asked.global_batch}"] if asked.global_batch else []
        words += [f"{asked.sequence} tokens"] if asked.sequence else []
        words += ["fused loss"] if asked.fused_loss else []
        words += [f"`--objective {asked.objective}`"] if asked.objective != "speed" else []
        return ", ".join(words)

    def plan(self) -> LaunchPlan:
        """What `recommend` says."""
        there = machine_of(gpu_gib=self.gib, count=self.ranks, host_gib=4000)
        return recommend(there, self.model, self.options)


def cases(draw: int) -> Iterator[Case]:
    """The cases of a draw."""
    for one in json.loads(CASES.read_text(encoding="utf-8")):
        if one["draw"] == draw:
            options = PlanOptions(**one["options"])
            yield Case(PRESETS[one["model"]], one["gib"], one["ranks"], options)


def request(case: Case, plan: LaunchPlan, folder: Path, number: int) -> dict[str, Any]:
    """What the rank is told."""
    setting = dataclasses.replace(
        setting_of(plan),
        lora_rank=0 if case.options.finetune == "full" else case.options.lora_rank,
        quantized=case.options.finetune == "qlora",
        fused_loss=case.options.fused_loss,
    )
    # a third pass and all after it repeat the second
    passes = min(plan.accumulation, 2)
    config = {**plan.ds_config, "gradient_accumulation_steps": passes}
    config["train_batch_size"] = plan.micro_batch * passes * plan.world
    beside = WORKSPACE + (NCCL_BYTES if case.ranks > 1 else 0)
    scenario = machine(gpus=1, memory=case.gib * GIB - beside, cuda_context_bytes=CUDA_CONTEXT)
    scenario["gpus"][0]["memory_used"] = 0
    path = folder / f"{number}.conf"
    fakenvml.write_scenario(path, scenario)
    return {
        **dataclasses.asdict(dataclasses.replace(setting, accumulation=passes)),
        "model": written(case.model),
        "ds_config": config,
        "script": {"zero_init": plan.stage == 3 and not setting.quantized},
        "allocator": plan.env.get("PYTORCH_CUDA_ALLOC_CONF"),
        "machine": str(path),
        "steps": STEPS,
    }


def answers(requests: list[dict[str, Any]], folder: Path) -> Iterator[tuple[int, str]]:
    """Each case's number, and the figures of its run or why there are none."""
    asked = folder / "cases.json"
    asked.write_text(json.dumps(requests), encoding="utf-8")
    env = bed.environment(
        machine(gpus=1),
        folder / "bed",
        STANDIN_MODE="meta",
        STANDIN_NCCL_SOLO="1",
        PYTORCH_NVML_BASED_CUDA_CHECK="1",  # the other way starts CUDA, and then no fork can
    )
    with subprocess.Popen(
        [sys.executable, "-m", "tests.standin.rank_peak", f"@{asked}"],
        cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        assert child.stdout is not None
        for line in child.stdout:  # DeepSpeed logs to the same stream
            if line.startswith(("peak ", "failed ")):
                _, number, said = line.split(maxsplit=2)
                yield int(number), said.strip()


def row(case: Case, plan: LaunchPlan, said: str) -> str:
    """A line of the table."""
    chosen = next(row for row in plan.memory.options if row.verdict == "chosen")
    batch = f"{plan.micro_batch} × {plan.accumulation}"
    mode = "yes" if plan.checkpointing else "no"
    cells = [case.model.name, f"{case.ranks} × {case.gib}", case.words, chosen.name, batch]
    cells += [str(plan.sequence), mode, f"{chosen.gpu_bytes / GIB:.1f}"]
    if said.startswith("{"):
        figures = json.loads(said)
        outside = CUDA_CONTEXT + WORKSPACE + (NCCL_BYTES if case.ranks > 1 else 0)
        sizes = [(figures[key] + outside) / GIB for key in ("allocated", "most_reserved")]
        cells += [*(f"{size:.1f}" for size in sizes), str(figures["retries"]), "runs"]
    else:
        cells += ["-", "-", "-", said]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Prints a row for each plan, when it is known."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draw", type=int, default=1)
    parser.add_argument("--only", help="numbers of cases, comma-separated")
    parser.add_argument("--list", action="store_true", help="print the plans and run nothing")
    args = parser.parse_args()
    found = [(case, case.plan()) for case in cases(args.draw)]
    wanted = [int(one) for one in args.only.split(",")] if args.only else range(len(found))
    found = [found[number] for number in wanted]
    print("| model | GPUs | | option | batch | tokens | recompute | planned |", end="")
    print(" allocated | reserved | retries | |\n|---|---|---|---|---|---|---|---|---|---|---|---|")
    if args.list:
        for case, plan in found:
            print(row(case, plan, "not run"))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asked = [request(case, plan, folder, at) for at, (case, plan) in enumerate(found)]
        for number, said in answers(asked, folder):
            print(row(*found[number], said), flush=True)


if __name__ == "__main__":
    main()
