"""Prolog wall time over a fake NVML: median and p99 of 100 runs, share of imports, 20 at once.

python benchmarks/hook.py [--runs 100]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
BUDGET = 5.0


def command(run: Path, *more: str) -> list[str]:
    words = [sys.executable, "-I", "-m", "dsdoctor", "hook", "slurm-prolog", "--run-folder"]
    return [*words, str(run), "--budget", str(BUDGET), *more]


def timed(argv: list[str], env: dict[str, str]) -> float:
    begun = time.monotonic()
    subprocess.run(argv, env=env, check=True, capture_output=True, cwd="/")
    return time.monotonic() - begun


def told(name: str, values: list[float]) -> None:
    ordered = sorted(values)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    print(f"{name:<34} median {statistics.median(ordered):.3f} s  p99 {p99:.3f} s")


def main() -> None:
    from tests.nvml import fakenvml, scenarios

    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = {
            **os.environ,
            **fakenvml.environment(scenarios.h200_x8(), folder),
            "SLURM_JOB_ID": "1",
        }
        env["SLURM_JOB_GPUS"] = "0,1,2,3"
        # with byte code, as pip installs dsdoctor
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        run = folder / "run"
        told(
            "bare interpreter", [timed([sys.executable, "-I", "-c", ""], env) for _ in range(runs)]
        )
        cold = [timed(command(run, "--max-age", "0"), env) for _ in range(runs)]
        told("prolog, everything read", cold)
        told("prolog, verdict re-used", [timed(command(run), env) for _ in range(runs)])
        imports = "import dsdoctor.hook.worker, dsdoctor.hook.judging as j"
        spent = [timed([sys.executable, "-I", "-c", imports], env) for _ in range(min(runs, 20))]
        pack = f"{imports}; j.packs.load_scope(j.Scope.NODE)"
        loaded = [timed([sys.executable, "-I", "-c", pack], env) for _ in range(min(runs, 20))]
        share = statistics.median(loaded) / statistics.median(cold)
        told("imports of the worker", spent)
        told("the same, and the pack of checks", loaded)
        print(f"share of imports in a full prolog: {share:.0%}")
        fresh = folder / "at-once"
        begun = time.monotonic()
        children = [
            subprocess.Popen(command(fresh), env=env, stdout=subprocess.DEVNULL, cwd="/")
            for _ in range(20)
        ]
        statuses = [child.wait() for child in children]
        print(f"20 at once: {time.monotonic() - begun:.2f} s, budget {BUDGET:g} s, {set(statuses)}")
        left = folder / "at-once" / "fail-open"
        print("let pass without a verdict:", len(list(left.iterdir())) if left.is_dir() else 0)


if __name__ == "__main__":
    main()
