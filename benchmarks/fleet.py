"""Merges 10,000 synthetic node reports: wall time and peak memory.

    python benchmarks/fleet.py [--nodes 10000]

Each report is a whole snapshot of a machine with 8 GPUs, with UUIDs, temperatures, power, clocks,
memory in use and counters of its own; some nodes drift and some have a fault. Goals: 10 s, 100 MiB.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))


def snapshot(folder: Path) -> dict[str, object]:
    from dsdoctor.fleet import bundle, frames, replay
    from dsdoctor.model.facts.base import to_builtins
    from tests.nvml import fakenvml, scenarios

    env = {**os.environ, **fakenvml.environment(scenarios.h200_x8(), folder)}
    done = subprocess.run(
        [sys.executable, "-", "--python", sys.executable],
        input=bundle.collector().encode(),
        env=env,
        capture_output=True,
        check=True,
    )
    recording = frames.document(done.stdout.splitlines(keepends=True))
    assert recording is not None
    made = to_builtins(replay.snapshot_of(recording, time.time()))
    assert isinstance(made, dict)
    return made


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=10_000)
    wanted = parser.parse_args().nodes
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        base = msgspec.json.encode(snapshot(folder))
        reports = folder / "reports"
        reports.mkdir()
        for number in range(wanted):
            node = msgspec.json.decode(base)
            facts = node["facts"]
            facts["os_info"]["hostname"] = f"gpu{number:05d}"
            for gpu in facts["gpus"]["gpus"]:
                gpu["uuid"] = f"GPU-{rng.getrandbits(64):016x}"
                gpu["health"]["temperature_c"] = rng.randint(30, 60)
                gpu["health"]["temperature_memory_c"] = rng.randint(30, 60)
                gpu["health"]["power_usage_mw"] = rng.randint(70_000, 120_000)
                gpu["clock_sm_mhz"] = rng.randint(345, 1980)
                gpu["memory_used_bytes"] = rng.randint(0, 1 << 20)
                gpu["pcie"]["replay_counter"] = rng.randint(0, 3)
            facts["resources"]["memory_available_bytes"] -= rng.randint(0, 1 << 28)
            if number % 400 == 3:
                facts["nvml"]["driver_version"] = "535.104.05"
            if number % 997 == 5:
                facts["gpus"]["gpus"][number % 8]["health"]["remapped_rows_failure"] = True
            (reports / f"gpu{number:05d}.json").write_bytes(msgspec.json.encode(node))
        size = sum(file.stat().st_size for file in reports.iterdir())
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "dsdoctor", "fleet", "check", "--from", str(reports)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.monotonic() - begun
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
        peak = used.ru_maxrss / 1024
    print(done.stdout, done.stderr)
    print(
        f"{wanted} reports of {size / wanted / 1024:.0f} KiB: {seconds:.1f} s, {peak:.0f} MiB; "
        f"{cpu:.1f} s of CPU time on {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
