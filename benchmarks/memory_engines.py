"""Models of many families in a real DeepSpeed engine, beside what `recommend` says of them.

    bash tests/run.sh standin --collect-only   # makes the environment
    .venv-standin/bin/pip install peft bitsandbytes
    .venv-standin/bin/python benchmarks/memory_engines.py [--draw 3] [--peaks FILE]

Each case is one rank of several under torch's real caching allocator, on shapes alone
(tests/standin): the second step of an engine, with its weights, optimizer, buckets and gradients.
Beside it stand the formula and `--measure`. The cases are not those from which the model was made:
shapes as published, most with fewer layers, drawn before they were run.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from dsdoctor.errors import UsageError
from dsdoctor.host import LocalHost
from dsdoctor.probes import model_passes
from dsdoctor.recommend import measured, memory
from dsdoctor.recommend.memory import GIB
from dsdoctor.recommend.models import from_config
from dsdoctor.recommend.releases import bias_kernel
from dsdoctor.recommend.setting import Setting
from tests.standin import bed
from tests.standin.conftest import machine

#: Name, config, the draw that it belongs to, and what differs from `Setting(world=8)`.
CASES = Path(__file__).with_suffix(".json")
#: What torch does not allocate, and the allowance for its cache.
OUTSIDE = ("CUDA context", "NCCL", "workspaces", "fragmentation")
#: ZeRO-1 and -2 give each rank other gradients to keep; these of eight are run, the highest counts.
RANKS = (0, 5, 7)

Case = dict[str, Any]


def setting_of(case: Case) -> Setting:
    kernel = bias_kernel(importlib.metadata.version("transformers"))
    return dataclasses.replace(Setting(world=8, bias_kernel=kernel), **case["setting"])


def ranks_of(setting: Setting) -> tuple[int, ...]:
    cuts = setting.stage in (1, 2) and not setting.lora_rank
    return RANKS if cuts and setting.world > max(RANKS) else (0,)


def allocated(need: memory.Memory) -> int:
    return memory.peak(item for item in need.gpu if item.name not in OUTSIDE)


def peak_of_rank(request: dict[str, Any], seconds: float) -> int | str:
    """The allocator's peak of one rank, or why there is none.

    Each has a process of its own: what is left of one engine was counted with the next.
    """
    with tempfile.TemporaryDirectory() as folder:
        env = bed.environment(
            machine(gpus=1, memory=140 * GIB),
            Path(folder),
            STANDIN_MODE="meta",
            STANDIN_NCCL_SOLO="1",
        )
        done = subprocess.run(
            [sys.executable, "-m", "tests.standin.rank_peak", json.dumps([request])],
            cwd=ROOT, env=env, capture_output=True, text=True, timeout=seconds, check=False,
        )  # fmt: skip
    for line in done.stdout.splitlines():
        if line.startswith("peak "):
            return int(line.split()[1])
        if line.startswith("failed "):
            return line
    last = (done.stderr.strip().splitlines() or [""])[-1]
    return f"ended with status {done.returncode}: {last}"


def peak_of(case: Case, seconds: float) -> int | str:
    """The highest peak of the ranks, or why there is none."""
    setting = setting_of(case)
    found = [
        peak_of_rank(
            {
                **dataclasses.asdict(setting),
                "model": case["config"],
                "script": case.get("script", {}),
                "rank": rank,
            },
            seconds,
        )
        for rank in ranks_of(setting)
    ]
    sizes = [peak for peak in found if isinstance(peak, int)]
    return max(sizes) if len(sizes) == len(found) else str(found)


def formula(config: dict[str, Any], setting: Setting) -> int | str:
    try:
        return allocated(memory.estimate(from_config(config), setting))
    except UsageError as error:
        return str(error)


def by_measuring(config: dict[str, Any], setting: Setting) -> int | str:
    try:
        cases = measured.cases(
            setting, (setting.micro_batch,), (setting.checkpointing,), family=config["model_type"]
        )
        records = model_passes.ask(LocalHost(), sys.executable, config, cases, timeout=600)
        found = measured.read(records, 1)
        model = measured.shape_of(records, "model")
        if model is None:
            return "not built"
        passes = found.moments(model, setting)
        return allocated(memory.estimate(model, setting, passes=passes))
    except UsageError as error:
        return str(error)


def error_of(said: int | str, truth: int | str) -> float | None:
    return said / truth - 1 if isinstance(said, int) and isinstance(truth, int) else None


def about(setting: Setting) -> str:
    """What of a setting is not in a column of its own."""
    words = [setting.precision] if setting.precision != "bf16" else []
    adapters = "QLoRA" if setting.quantised else "LoRA"
    words += [f"{adapters} {setting.lora_rank}"] if setting.lora_rank else []
    words += {"none": [], "optimizer": ["optimizer offloaded"]}.get(
        setting.offload, ["all offloaded"]
    )
    words += [f"{setting.image_tokens} tokens of images"] if setting.image_tokens else []
    words += {"flash": [], "sdpa": ["padding"], "eager": ["eager"]}[setting.attention]
    words += ["recomputation"] if setting.checkpointing else []
    return ", ".join(words)


def main() -> None:
    """Prints the table, a row when it is known."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", help="names of cases, comma-separated")
    parser.add_argument("--draw", type=int, help="the cases of that draw")
    parser.add_argument("--peaks", type=Path, help="file of peaks, read and written")
    parser.add_argument("--seconds", type=float, default=3600.0)
    args = parser.parse_args()
    wanted = args.only.split(";") if args.only else None
    known = json.loads(args.peaks.read_text("utf-8")) if args.peaks and args.peaks.exists() else {}
    errors: dict[str, list[float]] = {"--measure": [], "formula": []}
    print("| model | ZeRO | ranks | batch | tokens | | GiB | `--measure` | formula |")
    print("|---|---|---|---|---|---|---|---|---|")
    for case in json.loads(CASES.read_text(encoding="utf-8")):
        name, setting = case["name"], setting_of(case)
        if (wanted is not None and name not in wanted) or args.draw not in (None, case["draw"]):
            continue
        if name not in known:
            known[name] = peak_of(case, args.seconds)
        if args.peaks:
            args.peaks.write_text(json.dumps(known, indent=0), "utf-8")
        truth, cells = known[name], []
        said = {"--measure": by_measuring, "formula": formula}
        for who, ask in said.items():
            answer = ask(case["config"], setting)
            error = error_of(answer, truth)
            cells.append("-" if error is None else f"{error:+.1%}".replace("%", " %"))
            if error is not None:
                errors[who].append(error)
            if isinstance(answer, str):
                print(f"{name}: {who}: {answer}", file=sys.stderr, flush=True)
        if isinstance(truth, str):
            print(f"{name}: {truth}", file=sys.stderr, flush=True)
        size = f"{truth / GIB:.2f}" if isinstance(truth, int) else "-"
        batch = f"{setting.micro_batch} × {setting.accumulation}"
        row = (name, setting.stage, setting.world, batch, setting.sequence, about(setting), size)
        print("| " + " | ".join(map(str, (*row, *cells))) + " |", flush=True)
    print()
    for who, found in errors.items():
        if found:
            within = sum(abs(error) <= 0.01 for error in found)
            print(
                f"{who}: {len(found)} cases, median {statistics.median(found):+.1%}, "
                f"{min(found):+.1%} to {max(found):+.1%}, {within} within 1 %"
            )


if __name__ == "__main__":
    main()
