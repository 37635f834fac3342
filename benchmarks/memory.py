"""How far `recommend` is from what training takes, beside the estimators that others offer.

    python benchmarks/memory.py [--python PYTHON] [--only PRESET] > benchmarks/memory.md

Two tables. The first holds the passes to torch's CUDA caching allocator (memory_allocator.txt).
The second compares whole steps. There the truth is the table of ZeRO states, which tests hold to
real engines, with the passes of the full model run on shapes at exactly the micro-batch of the
case; `--measure` interpolates between micro-batches. PYTHON needs torch, transformers, accelerate
and deepspeed.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

from accelerate.commands.estimate import estimate_training_usage

from dsdoctor.host import LocalHost
from dsdoctor.probes import model_passes
from dsdoctor.recommend import estimators, measured, memory
from dsdoctor.recommend.activations import moments
from dsdoctor.recommend.memory import GIB
from dsdoctor.recommend.models import PRESETS, written
from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import ModelShape

ROWS = Path(__file__).with_name("memory_allocator.txt")
#: Preset, attention, and the passes: micro-batch, sequence, recomputation.
MODELS = (
    ("gpt2", "flash", ((8, 1024, False), (2, 512, False), (32, 1024, True))),
    ("gpt2-xl", "flash", ((2, 1024, False), (8, 1024, True), (2, 512, False))),
    ("llama-3.2-1b", "flash", ((2, 2048, False), (8, 2048, True), (6, 512, False))),
    ("llama-3-8b", "flash", ((2, 2048, False), (8, 2048, True), (2, 8192, True))),
    ("llama-2-7b", "sdpa", ((2, 2048, False), (8, 2048, True), (2, 1024, False))),
    ("qwen2.5-0.5b", "sdpa", ((2, 2048, False), (8, 2048, True), (2, 8192, True))),
    ("qwen2.5-7b", "flash", ((2, 2048, False), (8, 2048, True), (6, 512, False))),
    ("qwen3-4b", "flash", ((2, 2048, False), (8, 2048, True), (2, 512, False))),
    ("mistral-7b", "eager", ((2, 1024, False), (8, 1024, True), (2, 512, False))),
    ("gemma-2b", "flash", ((2, 2048, False), (8, 1024, True), (2, 512, False))),
)
#: Blocks of each model in the second table: layers are alike, and this keeps it to minutes.
LAYERS = 12
ABOUT_STEPS = f"""bf16, AdamW, 8 ranks, models with at most {LAYERS} layers. The truth of this table
is not a GPU's: ZeRO states by the table of docs/recommend.md (held to real engines within 5 % by
tests), passes of the model run on shapes at exactly this micro-batch. So it shows the error of the
formula and of interpolation, on top of the first table's."""
#: ZeRO stage, ranks, accumulation.
STEPS = ((1, 8, 1), (2, 8, 4), (3, 8, 1))


#: Columns of the second table.
WHO = ("measured", "formula", "deepspeed", "accelerate", "transformer math")


@dataclasses.dataclass(frozen=True)
class Case:
    """One step, and what each says of it in bytes."""

    name: str
    setting: Setting
    truth: int
    said: dict[str, int]

    def error(self, who: str) -> float:
        """Relative; above 0 = too much."""
        return self.said[who] / self.truth - 1


def allocated(need: memory.Memory) -> int:
    """What torch allocates: no context, no NCCL, no allowance."""
    outside = ("CUDA context", "NCCL", "workspaces", "fragmentation")
    return memory.peak(item for item in need.gpu if item.name not in outside)


def passes_of(python: str, model: ModelShape, settings: list[Setting]) -> list[measured.Measured]:
    """The passes of each setting, and of the micro-batches that `--measure` runs around it."""
    asked = []
    for setting in settings:
        batch = setting.micro_batch
        around = [
            max(size for size in measured.MEASURED_BATCHES if size <= batch),
            min(size for size in measured.MEASURED_BATCHES if size >= batch),
        ]
        sizes = tuple(dict.fromkeys((*around, batch)))
        asked.append(measured.cases(setting, sizes, (setting.checkpointing,), family=model.family))
    cases = [case for group in asked for case in group]
    records = model_passes.ask(LocalHost(), python, written(model), cases, timeout=900)
    runs = [record for record in records if "segments" in record]
    found = []
    for group in asked:
        mine, runs = runs[: len(group)], runs[len(group) :]
        found.append(measured.read(mine, len(group)))
    return found


def interpolated(passes: measured.Measured, setting: Setting) -> measured.Measured:
    """Without the case itself, as where it was not among the measured micro-batches."""

    def others(kind: tuple[measured.Pass, ...]) -> tuple[measured.Pass, ...]:
        if setting.micro_batch in measured.MEASURED_BATCHES:
            return kind
        return tuple(one for one in kind if one.batch != setting.micro_batch)

    return dataclasses.replace(
        passes, plain=others(passes.plain), recomputing=others(passes.recomputing)
    )


def transformer_math(model: ModelShape, setting: Setting) -> int:
    """The sum of "Transformer Math 101" (https://blog.eleuther.ai/transformer-math/, 2023-04-18).

    Weights and gradients of 16 bits, AdamW with fp32 master weights (12 bytes), each divided as
    its ZeRO stage says; activations by Korthikanti et al. (arXiv:2205.05198): 2 sbh a layer with
    recomputation, 34 without where no scores are stored, else 34 + 5 as/h. Logits are not in it.
    """
    weights, gradients, states = (
        size * model.parameters / (setting.world if setting.stage >= stage else 1)
        for size, stage in ((2, 3), (2, 2), (12, 1))
    )
    each = setting.sequence * setting.micro_batch * model.hidden * model.layers
    factor = 2.0
    if not setting.checkpointing:
        stored = setting.attention == "eager"
        factor = 34 + (5 * model.heads * setting.sequence / model.hidden if stored else 0)
    return int(weights + gradients + states + factor * each)


def peers(model: ModelShape, setting: Setting) -> dict[str, int]:
    """DeepSpeed's estimator of the stage, accelerate's of a training step, and a formula."""
    said = {}
    if setting.stage == 2:
        said["deepspeed"] = estimators.zero2(model.parameters, setting.world, 1, offload=False)[1]
    if setting.stage == 3:
        largest = model.largest_module
        said["deepspeed"] = estimators.zero3(
            model.parameters, largest, setting.world, 1, offload="none"
        )[1]
    usage = estimate_training_usage(4 * model.parameters, "bfloat16")
    formula = transformer_math(model, setting)
    return {**said, "accelerate": max(usage.values()), "transformer math": formula}


def steps(python: str, only: str | None) -> Iterator[Case]:
    """Every case, sized by all."""
    for name, attention, shapes in MODELS:
        if only not in (None, name):
            continue
        model = dataclasses.replace(PRESETS[name], layers=min(PRESETS[name].layers, LAYERS))
        settings = [
            Setting(micro_batch=batch, sequence=seq, checkpointing=on, attention=attention)
            for batch, seq, on in shapes
        ]
        found = passes_of(python, model, settings)
        print(name, file=sys.stderr)
        for base, passes in zip(settings, found, strict=True):
            for stage, world, accumulation in STEPS:
                setting = dataclasses.replace(
                    base, stage=stage, world=world, accumulation=accumulation
                )
                exact = passes.moments(model, setting)
                near = interpolated(passes, setting).moments(model, setting)
                said = {
                    "measured": allocated(memory.estimate(model, setting, passes=near)),
                    "formula": allocated(memory.estimate(model, setting)),
                    **peers(model, setting),
                }
                truth = allocated(memory.estimate(model, setting, passes=exact))
                yield Case(name, setting, truth, said)


def allocator(python: str, only: str | None) -> Iterator[tuple[str, float, float, float]]:
    """Each row of the allocator's peaks: its words, GiB, GiB measured, GiB by formula."""
    rows = [line.split() for line in ROWS.read_text().splitlines() if not line.startswith("#")]
    for name in dict.fromkeys(row[0] for row in rows):
        if only not in (None, name):
            continue
        mine = [row for row in rows if row[0] == name]
        model = dataclasses.replace(PRESETS[name], layers=4)
        settings = [
            Setting(
                micro_batch=int(row[1]),
                sequence=int(row[2]),
                attention=row[3],
                checkpointing=row[4] == "1",
            )
            for row in mine
        ]
        asked = [
            case
            for setting in settings
            for case in measured.cases(
                setting, (setting.micro_batch,), (setting.checkpointing,), family=model.family
            )
        ]
        records = model_passes.ask(LocalHost(), python, written(model), asked, timeout=900)
        tops = [
            max(record["forward_peak"], *(peak for peak, _ in record["segments"]))
            for record in records
            if "segments" in record
        ]
        for row, setting, top in zip(mine, settings, tops, strict=True):
            computed = max(one.bytes + 2 * one.gradient for one in moments(model, setting))
            yield " ".join(row[:5]), float(row[5]), top / GIB, computed / GIB


def percent(error: float) -> str:
    """With its sign."""
    return f"{100 * error:+.1f} %"


def summary(errors: list[float]) -> str:
    """Median, greatest and lowest of some errors."""
    if not errors:
        return "-"
    middle = statistics.median(abs(error) for error in errors)
    return f"{percent(middle)[1:]} | {percent(min(errors))} | {percent(max(errors))}"


def main() -> None:
    """Prints the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only")
    parser.add_argument("--table", choices=("allocator", "steps"))
    args = parser.parse_args()
    if args.table != "steps":
        print("# Memory: predicted and measured\n")
        print("Made by `python benchmarks/memory.py`. Errors above 0 predict too much.\n")
        show_allocator(list(allocator(args.python, args.only)))
    if args.table != "allocator":
        show_steps(list(steps(args.python, args.only)))


def show_allocator(rows: list[tuple[str, float, float, float]]) -> None:
    """The first table."""
    print("## Passes against torch's CUDA caching allocator\n")
    print(
        f"{len(rows)} peaks of models with four layers, transformers 4.57.3 (memory_allocator.txt)."
    )
    print("The child ran with the transformers of this environment.\n")
    print("| | median error | lowest | highest |\n|---|---|---|---|")
    print(f"| `--measure` | {summary([got / truth - 1 for _, truth, got, _ in rows])} |")
    print(f"| formula | {summary([got / truth - 1 for _, truth, _, got in rows])} |\n")
    print("Off by more than 2 %:\n\n| case | GiB | `--measure` | formula |\n|---|---|---|---|")
    for words, truth, run, computed in rows:
        if max(abs(run / truth - 1), abs(computed / truth - 1)) > 0.02:
            told = f"{percent(run / truth - 1)} | {percent(computed / truth - 1)}"
            print(f"| {words} | {truth:.2f} | {told} |")


def show_steps(cases: list[Case]) -> None:
    """The second table."""
    print(f"\n## Steps: {len(cases)} cases\n\n{ABOUT_STEPS}\n")
    print("| | cases | median error | lowest | highest | fits said, does not fit |")
    print("|---|---|---|---|---|---|")
    for who in WHO:
        mine = [case for case in cases if who in case.said]
        room = {"measured": 0.05, "formula": 0.10}.get(who, 0.0)
        short = sum(case.said[who] * (1 + room) < case.truth for case in mine)
        print(f"| {who} | {len(mine)} | {summary([case.error(who) for case in mine])} | {short} |")
    print("\nThe last column: cases that, on a GPU with exactly the predicted memory and the")
    print("head-room that `recommend` keeps for the model's error, would run out of it.\n")
    print("| model | ZeRO | batch | tokens | attention | recompute | GiB |", end="")
    print(" `--measure` | formula | DeepSpeed | accelerate | transformer math |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for case in cases:
        one = case.setting
        errors = [percent(case.error(who)) if who in case.said else "-" for who in WHO]
        batch = f"{one.micro_batch} × {one.accumulation}"
        cells = (case.name, one.stage, batch, one.sequence, one.attention)
        words = " | ".join(map(str, cells))
        mode = "yes" if one.checkpointing else "no"
        print(f"| {words} | {mode} | {case.truth / GIB:.2f} | {' | '.join(errors)} |")


if __name__ == "__main__":
    main()
