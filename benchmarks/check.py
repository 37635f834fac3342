"""Time of `check` against its peers, measured in the same run, as ratios.

    python benchmarks/check.py [--runs 5] [--cpu] [--python PATIENT]

Wall time, the median; with `--cpu`, user and system time of all processes, the least of the runs:
for a machine on which other programs run.

Goals: `check --quick` at most 0.15 of `ds_report`; `check` at most 1.15 of one
`import torch, deepspeed`; `--version` at most 1.5 of a bare interpreter; `packs`, `explain` and
`fix --list` at most 0.2 s on an idle core.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path


def median(argv: list[str], runs: int, env: dict[str, str]) -> float:
    """Median wall time in seconds; the first run warms the page cache and does not count."""
    taken = []
    for number in range(runs + 1):
        begun = time.perf_counter()
        subprocess.run(argv, env=env, capture_output=True, check=False)
        if number:
            taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def least_cpu(argv: list[str], runs: int, env: dict[str, str]) -> float:
    """Least CPU time in seconds of a command and its children."""

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    taken = []
    for _ in range(runs + 1):
        begun = used()
        subprocess.run(argv, env=env, capture_output=True, check=False)
        taken.append(used() - begun)
    return min(taken)


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cpu", action="store_true", help="CPU time, not wall time")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    bin_dir = Path(options.python).parent
    env = {**os.environ, "PATH": f"{bin_dir}:{os.environ['PATH']}"}
    # pip compiles what it installs; without its byte code dsdoctor would be compiled in each run
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    ours = [sys.executable, "-m", "dsdoctor"]
    rows = {
        "bare interpreter": [sys.executable, "-c", "pass"],
        "dsdoctor --version": [*ours, "--version"],
        "ds_report": [options.python, "-m", "deepspeed.env_report"],
        "check --quick": [*ours, "check", "--quick", "--python", options.python],
        "import torch, deepspeed": [options.python, "-c", "import torch, deepspeed"],
        "check": [*ours, "check", "--python", options.python],
    }
    rows |= {
        f"dsdoctor {' '.join(argv)}": [*ours, *argv]
        for argv in (["packs"], ["explain", "DSD101"], ["fix", "--list"])
    }
    measured = least_cpu if options.cpu else median
    times = {name: measured(argv, options.runs, env) for name, argv in rows.items()}
    for name, seconds in times.items():
        print(f"{name:<26}{seconds:8.3f} s")
    for name, peer, goal in (
        ("dsdoctor --version", "bare interpreter", 1.5),
        ("check --quick", "ds_report", 0.15),
        ("check", "import torch, deepspeed", 1.15),
    ):
        ratio = times[name] / times[peer]
        print(
            f"{name} / {peer}: {ratio:.2f} (goal {goal:g}) {'met' if ratio <= goal else 'MISSED'}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
