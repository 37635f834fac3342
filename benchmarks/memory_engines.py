"""Models of many families in a real DeepSpeed engine, beside what `recommend` says of them.

    bash tests/run.sh standin --collect-only   # makes the environment
    .venv-standin/bin/python benchmarks/memory_engines.py [--only NAME] [--rank 0]

Each case is one rank of eight under torch's real caching allocator, on shapes alone
(tests/standin): the second step of an engine, with its weights, optimizer, buckets and gradients.
Beside it stand the formula and `--measure`. The cases are not those from which the model was made:
shapes as published, with fewer layers (and fewer experts), drawn before they were run.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from dsdoctor.errors import UsageError  # noqa: E402
from dsdoctor.host import LocalHost  # noqa: E402
from dsdoctor.probes import model_passes  # noqa: E402
from dsdoctor.recommend import measured, memory  # noqa: E402
from dsdoctor.recommend.memory import GIB  # noqa: E402
from dsdoctor.recommend.models import from_config  # noqa: E402
from dsdoctor.recommend.setting import Setting  # noqa: E402
from tests.standin import bed  # noqa: E402
from tests.standin.conftest import machine  # noqa: E402

#: Name, config, and the setting: stage, micro-batch, tokens, and what else differs from `Setting`.
CASES = Path(__file__).with_suffix(".json")
#: What torch does not allocate, and the allowance for its cache.
OUTSIDE = ("CUDA context", "NCCL", "workspaces", "fragmentation")


def setting_of(options: dict[str, Any]) -> Setting:
    return dataclasses.replace(Setting(world=8), **options)


def allocated(need: memory.Memory) -> int:
    return memory.peak(item for item in need.gpu if item.name not in OUTSIDE)


def peaks(
    cases: list[tuple[str, dict[str, Any], dict[str, Any]]], seconds: float
) -> list[int | str]:
    """The allocator's peak of each case, or why there is none."""
    requests = [
        {**dataclasses.asdict(setting_of(options)), "model": config} for _, config, options in cases
    ]
    command = [sys.executable, "-m", "tests.standin.rank_peak"]
    found: list[int | str] = []
    while len(found) < len(cases):
        with tempfile.TemporaryDirectory() as folder:
            env = bed.environment(
                machine(gpus=1, memory=80 * GIB),
                Path(folder),
                STANDIN_MODE="meta",
                STANDIN_NCCL_SOLO="1",
            )
            done = subprocess.run(
                [*command, json.dumps(requests[len(found) :])],
                cwd=ROOT, env=env, capture_output=True, text=True, timeout=seconds, check=False,
            )  # fmt: skip
        lines = [line for line in done.stdout.splitlines() if line.startswith(("peak ", "failed "))]
        found += [int(line.split()[1]) if line.startswith("peak ") else line for line in lines]
        if len(found) < len(cases):  # the process died in the next one
            last = (done.stderr.strip().splitlines() or [""])[-1]
            found.append(f"ended with status {done.returncode}: {last}")
    return found


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


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", help="names of cases, comma-separated")
    parser.add_argument(
        "--rank", type=int, default=0, help="each has another part of the gradients"
    )
    parser.add_argument("--seconds", type=float, default=3600.0)
    args = parser.parse_args()
    wanted = args.only.split(",") if args.only else None
    rows = json.loads(CASES.read_text(encoding="utf-8"))
    cases = [case for case in rows if wanted is None or case["name"] in wanted]
    truths = peaks(cases, args.rank, args.seconds)
    errors: dict[str, list[float]] = {"--measure": [], "formula": []}
    print("| model | ZeRO | batch | tokens | recompute | GiB | `--measure` | formula |")
    print("|---|---|---|---|---|---|---|---|")
    for case, truth in zip(cases, truths, strict=True):
        name, config, setting = case["name"], case["config"], setting_of(case["setting"])
        cells = []
        for who, said in (
            ("--measure", by_measuring(config, setting)), ("formula", formula(config, setting)),
        ):  # fmt: skip
            error = error_of(said, truth)
            if error is None:
                cells.append("-")
                if isinstance(said, str):
                    print(f"{name}: {who}: {said}", file=sys.stderr)
                continue
            errors[who].append(error)
            cells.append(f"{error:+.1%}".replace("%", " %"))
        size = f"{truth / GIB:.2f}" if isinstance(truth, int) else "-"
        if isinstance(truth, str):
            print(f"{name}: {truth}", file=sys.stderr)
        print(
            f"| {name} | {setting.stage} | {setting.micro_batch} × {setting.accumulation} "
            f"| {setting.sequence} | {'yes' if setting.checkpointing else 'no'} | {size} "
            f"| {' | '.join(cells)} |",
            flush=True,
        )
    print()
    for who, found in errors.items():
        if found:
            print(
                f"{who}: {len(found)} cases, median {statistics.median(found):+.1%}, "
                f"{min(found):+.1%} to {max(found):+.1%}"
            )


if __name__ == "__main__":
    main()
