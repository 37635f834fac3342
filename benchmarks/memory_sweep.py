"""Default plans of every preset on several GPUs, held against passes that are run on shapes.

    python benchmarks/memory_sweep.py [--python PYTHON] [--gpus 16,24,40,80] [--only PRESET]

For each preset and size of GPU (eight of them) the default plan is made by formula. Where it fits,
the model runs on shapes at exactly its micro-batch, sequence and recomputation, with two layers and
with four. All layers follow from the two on a straight line, for layers are alike. What was
measured then takes the place of the loss and of the largest moment of the backward pass. Prints
each plan whose peak exceeds the GPU, and the count. PYTHON needs torch and transformers.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from typing import Any

from dsdoctor.host import LocalHost
from dsdoctor.model.launch_plan import LaunchPlan
from dsdoctor.probes import model_passes
from dsdoctor.recommend import measured, memory
from dsdoctor.recommend.activations import Moment, moments
from dsdoctor.recommend.machine import machine_of
from dsdoctor.recommend.memory import GIB
from dsdoctor.recommend.models import PRESETS, written
from dsdoctor.recommend.options import PlanOptions
from dsdoctor.recommend.planning import recommend
from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import ModelShape

FEW, MORE = 2, 4
COUNT = 8
HOST_GIB = 2000


def setting_of(plan: LaunchPlan) -> Setting:
    """The plan as the memory model sees it."""
    return Setting(
        stage=plan.stage,
        offload=plan.offload,
        micro_batch=plan.micro_batch,
        sequence=plan.sequence,
        accumulation=plan.accumulation,
        world=plan.world,
        precision=plan.precision,
        attention=plan.attention,
        checkpointing=plan.checkpointing,
    )


def run(python: str, model: ModelShape, setting: Setting, layers: int) -> dict[str, Any]:
    """One pass of the model with so many layers."""
    asked = measured.cases(
        setting, (setting.micro_batch,), (setting.checkpointing,), family=model.family
    )
    config = written(dataclasses.replace(model, layers=layers))
    records = model_passes.ask(LocalHost(), python, config, asked, timeout=900)
    return next(record for record in records if "segments" in record)


def passes(python: str, model: ModelShape, setting: Setting) -> list[Moment]:
    """The moments of the formula, with what was measured in place of the two that decide."""
    few, more = (run(python, model, setting, layers) for layers in (FEW, MORE))

    def all_layers(first: int, second: int) -> int:
        return first + (second - first) * (model.layers - FEW) // (MORE - FEW)

    tops = [max(one["forward_peak"], one["segments"][0][0]) for one in (few, more)]
    backs = [max(peak for peak, _ in one["segments"][1:]) for one in (few, more)]
    loss, *later = moments(model, setting)
    largest = max(later, key=lambda one: one.bytes)
    return [
        Moment(name=loss.name, activations=all_layers(tops[0], tops[1])),
        *(one for one in later if one is not largest),
        Moment(
            name=largest.name,
            activations=all_layers(backs[0], backs[1]),
            finished=largest.finished,
        ),
    ]


def sweep(python: str, sizes: list[int], only: str | None) -> Iterator[tuple[str, int, float]]:
    """Preset, GiB of the GPU, and the share of it that the measured plan takes."""
    for name, model in PRESETS.items():
        for gib in sizes if only in (None, name) else ():
            machine = machine_of(gpu_gib=gib, count=COUNT, host_gib=HOST_GIB)
            plan = recommend(machine, model, PlanOptions())
            if not plan.fits:
                continue
            setting = setting_of(plan)
            chosen = next(row for row in plan.memory.options if row.verdict == "chosen")
            found = memory.estimate(model, setting, passes=passes(python, model, setting))
            more = found.gpu_bytes - memory.estimate(model, setting).gpu_bytes
            yield name, gib, (chosen.gpu_bytes + more) / (gib * GIB)


def main() -> None:
    """Prints plans above their GPU, and the count."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--gpus", default="16,24,40,80")
    parser.add_argument("--only")
    args = parser.parse_args()
    found = list(sweep(args.python, [int(size) for size in args.gpus.split(",")], args.only))
    for name, gib, share in found:
        if share > 1:
            print(f"{name} on {gib} GiB: {share:.2f} of the GPU")
    over = sum(share > 1 for _, _, share in found)
    most = max((share for _, _, share in found), default=0.0)
    print(f"{len(found)} plans fit by formula, {over} exceed the GPU; the most takes {most:.2f}")


if __name__ == "__main__":
    main()
