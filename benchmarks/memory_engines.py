"""Models of many families in a real DeepSpeed engine, beside what `recommend` says of them.

    bash tests/run.sh standin --collect-only   # makes the environment
    .venv-standin/bin/pip install peft bitsandbytes liger-kernel
    .venv-standin/bin/python benchmarks/memory_engines.py --draw 6 --predict FILE
    .venv-standin/bin/python benchmarks/memory_engines.py --draw 6 --peaks FILE [--predict FILE]

Each case is one rank of several under torch's real caching allocator, on shapes alone
(tests/standin): the second step of an engine, with its weights, optimizer, buckets and gradients.
Beside it stand the formula and `--measure`, at micro-batches of a plan: those between two that are
measured are interpolated. The cases are not those from which the model was made:
shapes as published, most with fewer layers, drawn before they were run. What `--predict` alone
writes was said before any engine ran.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from dsdoctor.errors import UsageError
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
#: What the child that measures writes before each record.
SENTINEL = "\x1edsdoctor:"

Case = dict[str, Any]
#: Of a case: bytes by `--measure` and by formula, or why there are none; the ranks to run.
Said = dict[str, Any]


def setting_of(case: Case) -> Setting:
    kernel = bias_kernel(importlib.metadata.version("transformers"))
    asked = {**case["setting"]}
    if "saved_modules" in asked:
        asked["saved_modules"] = tuple(asked["saved_modules"])
    return dataclasses.replace(Setting(world=8, bias_kernel=kernel), **asked)


def ranks_of(sizes: Sequence[int], setting: Setting) -> tuple[int, ...]:
    """Rank 0, and those that take most: ZeRO-1 and -2 give each rank other gradients.

    One of them keeps most. With the optimizer on the host each rank computes the norm of its part
    of a gradient in fp64, so the rank with the largest part may take more than that one.
    """
    if setting.stage not in (1, 2) or setting.lora_rank or setting.world == 1:
        return (0,)
    total = sum(sizes)
    most = largest = -1
    heaviest = norms = 0
    for rank in range(setting.world):
        start, end = rank * total // setting.world, (rank + 1) * total // setting.world
        kept = part = at = 0
        for size in sizes:
            inside = min(end, at + size) - max(start, at)
            kept += size if inside > 0 else 0
            part = max(part, inside)
            at += size
        if kept > most:
            most, heaviest = kept, rank
        if part > largest:
            largest, norms = part, rank
    return tuple(sorted({0, heaviest, *([norms] if setting.offloads_optimizer else [])}))


def allocated(need: memory.Memory) -> int:
    return memory.peak(item for item in need.gpu if item.name not in OUTSIDE)


def peaks_of(requests: Sequence[Mapping[str, Any]]) -> Iterator[int | str]:
    """The allocator's peak of each, or why there is none: each rank has a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        asked = Path(name) / "cases.json"
        asked.write_text(json.dumps(requests), encoding="utf-8")
        env = bed.environment(
            machine(gpus=1, memory=8192 * GIB),
            Path(name) / "bed",
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
                if line.startswith("peak "):
                    yield json.loads(line.split(maxsplit=2)[2])["allocated"]
                elif line.startswith("failed "):
                    yield line.strip()


def asked_of(case: Case) -> dict[str, Any]:
    """The request to the child that measures: the micro-batches that a plan would measure."""
    setting = setting_of(case)
    batch = setting.micro_batch
    around = (
        max((size for size in measured.MEASURED_BATCHES if size <= batch), default=batch),
        min((size for size in measured.MEASURED_BATCHES if size >= batch), default=batch),
    )
    passes = measured.cases(
        setting,
        tuple(dict.fromkeys(around)),
        (setting.checkpointing,),
        family=case["config"]["model_type"],
    )
    return {"config": case["config"], "cases": passes}


def measure_all(path: str) -> None:
    """Runs the child of `--measure` for each request, forked from here: imports are made once."""
    import torch  # noqa: F401  # for the children
    import transformers  # noqa: F401  # for the children

    from dsdoctor.probes.children import measure_model

    for request in json.loads(Path(path).read_text(encoding="utf-8")):
        sys.stdout.flush()
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                sys.argv = ["measure_model", json.dumps(request)]
                measure_model.main()
            os._exit(0)
        os.waitpid(child, 0)
        print("\n" + SENTINEL + "null", flush=True)


def records_of(cases: Sequence[Case]) -> Iterator[list[dict[str, Any]]]:
    """What the child says of each case."""
    with tempfile.TemporaryDirectory() as name:
        asked = Path(name) / "requests.json"
        asked.write_text(json.dumps([asked_of(case) for case in cases]), encoding="utf-8")
        env = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
        with subprocess.Popen(
            [sys.executable, __file__, "--measure-all", str(asked)],
            cwd=ROOT, env={**env, "HF_HUB_OFFLINE": "1"}, stdout=subprocess.PIPE, text=True,
        ) as child:  # fmt: skip
            assert child.stdout is not None
            found: list[dict[str, Any]] = []
            for line in child.stdout:
                if not line.startswith(SENTINEL):
                    continue
                record = json.loads(line.removeprefix(SENTINEL))
                if record is None:
                    yield found
                    found = []
                else:
                    found.append(record)


def formula(config: dict[str, Any], setting: Setting) -> int | str:
    try:
        return allocated(memory.estimate(from_config(config), setting))
    except UsageError as error:
        return str(error)


def said_of(case: Case, records: Sequence[Mapping[str, Any]]) -> Said:
    """What is predicted, and which ranks are run."""
    setting = setting_of(case)
    model = measured.shape_of(records, "model")
    by_measuring: int | str
    try:
        found = measured.read(records, len(asked_of(case)["cases"]))
        assert model is not None
        one = dataclasses.replace(setting, saved=found.saved or setting.saved)
        passes = found.moments(model, one)
        by_measuring = allocated(memory.estimate(model, one, passes=passes))
    except UsageError as error:
        by_measuring = str(error)
    return {
        "--measure": by_measuring,
        "formula": formula(case["config"], setting),
        "ranks": ranks_of(model.sizes if model else (), setting),
    }


def error_of(said: int | str, truth: int | str) -> float | None:
    return said / truth - 1 if isinstance(said, int) and isinstance(truth, int) else None


def about(setting: Setting) -> str:
    """What of a setting is not in a column of its own."""
    words = [setting.precision] if setting.precision != "bf16" else []
    adapters = "QLoRA" if setting.quantized else "LoRA"
    words += [f"{adapters} {setting.lora_rank}"] if setting.lora_rank else []
    words += {"none": [], "optimizer": ["optimizer offloaded"]}.get(
        setting.offload, ["all offloaded"]
    )
    words += [f"{setting.image_tokens} tokens of images"] if setting.image_tokens else []
    words += {"flash": [], "sdpa": ["padding"], "eager": ["eager"]}[setting.attention]
    words += ["recomputation"] if setting.checkpointing else []
    words += ["fused loss"] if setting.fused_loss else []
    words += ["fp32 gradients"] if setting.gradient_width == 4 else []
    words += [f"saved: {', '.join(setting.saved_modules)}"] if setting.saved_modules else []
    return ", ".join(words)


def read(path: Path | None) -> dict[str, Any]:
    """A file of results, empty where there is none yet."""
    found: dict[str, Any] = (
        json.loads(path.read_text("utf-8")) if path is not None and path.exists() else {}
    )
    return found


def predict(cases: Sequence[Case], path: Path | None) -> dict[str, Said]:
    """What is predicted of each case; what the file has is not asked again."""
    known = read(path)
    missing = [case for case in cases if case["name"] not in known]
    for case, records in zip(missing, records_of(missing) if missing else (), strict=True):
        known[case["name"]] = said_of(case, records)
        if path is not None:
            path.write_text(json.dumps(known, indent=0), "utf-8")
    return known


def run(cases: Sequence[Case], said: Mapping[str, Said], path: Path | None) -> dict[str, Any]:
    """The peak of each rank of each case; what the file has is not run again."""
    known = read(path)
    wanted = [
        (f"{case['name']}, rank {rank}", case, rank)
        for case in cases
        for rank in said[case["name"]]["ranks"]
    ]
    wanted = [one for one in wanted if one[0] not in known]
    requests = [
        {
            **dataclasses.asdict(setting_of(case)),
            "model": case["config"],
            "script": case.get("script", {}),
            "rank": rank,
        }
        for _, case, rank in wanted
    ]
    for (name, _, _), peak in zip(wanted, peaks_of(requests) if requests else (), strict=True):
        known[name] = peak
        if path is not None:
            path.write_text(json.dumps(known, indent=0), "utf-8")
    return known


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", help="names of cases, separated by semicolons")
    parser.add_argument("--draw", type=int, help="the cases of that draw")
    parser.add_argument("--predict", type=Path, help="file of predictions, read and written")
    parser.add_argument("--peaks", type=Path, help="file of peaks, read and written")
    parser.add_argument("--measure-all", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure_all:
        measure_all(args.measure_all)
        return
    wanted = args.only.split(";") if args.only else None
    cases = [
        case
        for case in json.loads(CASES.read_text(encoding="utf-8"))
        if (wanted is None or case["name"] in wanted) and args.draw in (None, case["draw"])
    ]
    said = predict(cases, args.predict)
    if args.predict and not args.peaks:
        return
    show(cases, said, run(cases, said, args.peaks))


def show(cases: Sequence[Case], said: Mapping[str, Said], peaks: Mapping[str, int | str]) -> None:
    """Prints the table, and what is missing from it on stderr."""
    errors: dict[str, list[float]] = {"--measure": [], "formula": []}
    print("| model | ZeRO | ranks | batch | tokens | | GiB | `--measure` | formula |")
    print("|---|---|---|---|---|---|---|---|---|")
    for case in cases:
        name, setting = case["name"], setting_of(case)
        mine = [peaks[f"{name}, rank {rank}"] for rank in said[name]["ranks"]]
        sizes = [one for one in mine if isinstance(one, int)]
        truth = max(sizes) if len(sizes) == len(mine) else str(mine)
        cells = []
        for who, found in errors.items():
            answer = said[name][who]
            error = error_of(answer, truth)
            cells.append("-" if error is None else f"{error:+.1%}".replace("%", " %"))
            if error is not None:
                found.append(error)
            if isinstance(answer, str):
                print(f"{name}: {who}: {answer}", file=sys.stderr)
        if isinstance(truth, str):
            print(f"{name}: {truth}", file=sys.stderr)
        size = f"{truth / GIB:.2f}" if isinstance(truth, int) else "-"
        batch = f"{setting.micro_batch} × {setting.accumulation}"
        row = (name, setting.stage, setting.world, batch, setting.sequence, about(setting), size)
        print("| " + " | ".join(map(str, (*row, *cells))) + " |")
    print()
    for who, found in errors.items():
        if found:
            near, close = (sum(abs(error) <= bound for error in found) for bound in (0.01, 0.05))
            print(
                f"{who}: {len(found)} cases, median {statistics.median(found):+.1%}, "
                f"{min(found):+.1%} to {max(found):+.1%}, {near} within 1 %, {close} within 5 %"
            )


if __name__ == "__main__":
    main()
