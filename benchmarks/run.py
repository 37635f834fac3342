"""What `dsdoctor run` costs a job: the same job with and without it, in turns, in one run.

    python benchmarks/run.py [--rounds 3]

Prints the step time with / without (goal 1.01), the memory of dsdoctor's own processes (goal
80 MiB), the time it adds to the start (goal 0.3 s, without the check), the share of a core that
sampling takes with 64 ranks on the node (goal 2 %), and what 1 GiB of output costs (goal: within a
minute, nothing lost, memory as with none, at most 216 MB kept).

A round is four jobs, without, with, with, without, so that a machine that becomes slower or faster
affects both alike. Steps of a job's first two seconds do not count: the watcher starts in them. The
wall time of a step counts what the watcher takes from the job, and also whatever else runs on the
machine; its processor time counts only what slows the job's own work (caches, memory, the clock).
The ratio of the two jobs without dsdoctor shows how much of a difference is noise.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: Steps of about 20 ms that print as a trainer does.
STEP = """
import json, sys, time
warm, measured = float(sys.argv[1]), float(sys.argv[2])
data = list(range(100000))
wall, cpu = [], []
begun, step = time.perf_counter(), 0
while time.perf_counter() - begun < warm + measured:
    step += 1
    before, used = time.perf_counter(), time.process_time()
    for _ in range(10): sum(x * x for x in data[::4])
    print(f"step {step} loss: 2.0", flush=True)
    if before - begun > warm:
        wall.append(time.perf_counter() - before)
        cpu.append(time.process_time() - used)
print(json.dumps([wall, cpu]))
"""
STARTS = 5
WARM_SECONDS, MEASURED_SECONDS = 2.0, 6.0
RANKS = """
import os, subprocess, sys, time
kids = [subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(20)"],
        env={**os.environ, "RANK": str(n)}) for n in range(64)]
for kid in kids: kid.wait()
"""
#: Lines such as a logger writes; the job writes the same.
LINE = b"%08d rank 3: gathered parameters of layer 17 in 12.0 ms, ok\n"
BLOCK = b"".join(LINE % number for number in range(1 << 14))
BLOCKS = -(-(1 << 30) // len(BLOCK))
FLOOD = f"""
import sys
block = b"".join({LINE!r} % number for number in range(1 << 14))
for _ in range({BLOCKS}):
    sys.stdout.buffer.write(block)
"""
RUN = [sys.executable, "-m", "dsdoctor", "run", "--preflight", "off", "-q", "--"]


@dataclasses.dataclass(frozen=True)
class Steps:
    """Median times of a step, s."""

    wall: float
    cpu: float


def median_steps(prefix: list[str], env: dict[str, str]) -> Steps:
    times = [str(WARM_SECONDS), str(MEASURED_SECONDS)]
    done = subprocess.run(
        [*prefix, sys.executable, "-c", STEP, *times],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    wall, cpu = json.loads(done.stdout.splitlines()[-1])
    return Steps(statistics.median(wall), statistics.median(cpu))


def one_round(env: dict[str, str]) -> list[Steps]:
    """Without, with, with, without."""
    return [median_steps(prefix, env) for prefix in ([], RUN, RUN, [])]


def spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"


def print_steps(rounds: list[list[Steps]]) -> None:
    for name in ("wall", "cpu"):
        times = [[getattr(job, name) for job in four] for four in rounds]
        ratios = [(b + c) / (a + d) for a, b, c, d in times]
        noise = [max(a, d) / min(a, d) for a, _, _, d in times]
        step = statistics.median(a for a, *_ in times)
        print(
            f"{name} time of a step of {step * 1000:.1f} ms, with / without: {spread(ratios)}; "
            f"without / without: {spread(noise)}"
        )


def seconds(command: list[str], env: dict[str, str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, env=env, capture_output=True, check=True)
    return time.perf_counter() - begun


def family(pid: int) -> list[int]:
    found = [pid]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == pid:
                found += family(int(entry.name))
    return found


def ours(pid: int) -> list[int]:
    """dsdoctor, its watcher and the watcher of GPUs; not the job."""
    named = []
    for one in family(pid):
        try:
            line = Path(f"/proc/{one}/cmdline").read_bytes()
        except OSError:
            continue
        if one == pid or b"watch_host.py" in line or b"watch_gpus.py" in line:
            named.append(one)
    return named


def resident(pids: list[int]) -> float:
    """MiB that these processes do not share with others."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total / 1024


def cpu(pids: list[int]) -> float:
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0.0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / ticks
    return total


def many_ranks(env: dict[str, str]) -> tuple[float, float]:
    """Share of a core while 64 ranks sleep, and resident MiB."""
    with subprocess.Popen([*RUN, sys.executable, "-c", RANKS], env=env) as child:
        time.sleep(6)
        pids = ours(child.pid)
        before, begun = cpu(pids), time.perf_counter()
        time.sleep(10)
        share = (cpu(pids) - before) / (time.perf_counter() - begun)
        memory = resident(pids)
        child.wait()
    return share, memory


def flood(env: dict[str, str], folder: Path) -> tuple[float, float, bool, float]:
    """Seconds for 1 GiB through a pipe, highest MiB resident, whole or not, MiB on disk."""
    expected = hashlib.sha256()
    for _ in range(BLOCKS):
        expected.update(BLOCK)
    seen, peak, begun = hashlib.sha256(), 0.0, time.perf_counter()
    with subprocess.Popen(
        [*RUN, sys.executable, "-c", FLOOD], env=env, stdout=subprocess.PIPE
    ) as child:
        pids: list[int] = []
        looked = 0.0
        while chunk := os.read(child.stdout.fileno() if child.stdout else -1, 1 << 18):
            seen.update(chunk)
            if time.perf_counter() > looked + 0.5:
                looked = time.perf_counter()
                pids = ours(child.pid)
                peak = max(peak, resident(pids))
    took = time.perf_counter() - begun
    kept = sum(path.stat().st_size for path in folder.rglob("output-*.gz")) / (1 << 20)
    return took, peak, seen.digest() == expected.digest(), kept


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "DSDOCTOR_RUNS": folder}
        # with byte code, as pip installs dsdoctor
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        steps = [one_round(env) for _ in range(rounds)]
        starts = [seconds([*RUN, "true"], env) - seconds(["true"], env) for _ in range(STARTS)]
        share, memory = many_ranks(env)
        took, peak, whole, kept = flood(env, Path(folder))
    print(f"{rounds} rounds of four jobs, median of their ratios (smallest to largest):")
    print_steps(steps)
    print(f"start: {statistics.median(starts):.2f} s beyond the command's own")
    print(f"64 ranks: {share:.1%} of a core, {memory:.0f} MiB (proportional set size)")
    state = "whole" if whole else "NOT whole"
    print(f"1 GiB of output: {took:.1f} s, {state}, {peak:.0f} MiB, {kept:.1f} MiB kept on disk")
    print(f"load while measuring: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
