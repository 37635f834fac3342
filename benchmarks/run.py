"""What `dsdoctor run` costs a job: the same job with and without it, in turns, in one run.

    python benchmarks/run.py [--pairs 15]

Prints the step time with / without (goal 1.01), the memory of dsdoctor's own processes (goal
80 MiB), the time it adds to the start (goal 0.3 s, without the check), the share of a core that
sampling takes with 64 ranks on the node (goal 2 %), and what 1 GiB of output costs (goal: within a
minute, nothing lost, memory as with none, at most 216 MB kept).

A step's time differs by some percent from one process to the next (addresses, caches) and from one
minute to the next (the machine), which hides 1 %. So it is measured twice:

- **jobs in pairs**: one with and one without, the order changing from pair to pair. Each is a new
  process, so all that `run` does to a job counts, and the median of many pairs is needed. Steps of
  a job's first two seconds do not count: the watcher starts in them. Pairs of two jobs without
  dsdoctor, taken from the same sequence, show what is noise.
- **one job in turns**: a job under `dsdoctor run`, whose own processes are stopped (SIGSTOP) and
  continued in turns, so that both times are of one process and seconds apart. That resolves a part
  in a thousand on a quiet machine; it does not see what does not run, such as a variable.

Each gives the median of the pairs' ratios and its 95 % interval by rank (no distribution is
assumed). A time is the mean of all steps, not their median, which would not see the two steps in a
hundred during which the host is sampled. Wall time counts what is taken from the job, and whatever
else runs on the machine; processor time counts only what slows the job's own work (caches, memory,
the clock). Last, the share of a core that dsdoctor's processes take beside this job: on a machine
without an idle core, a step cannot lose more to them on average.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: Steps of about 20 ms that print as a trainer does; the times go into a file at the end.
STEP = """
import json, sys, time
file, seconds = sys.argv[1], float(sys.argv[2])
data = list(range(100000))
rows, begun, step = [], time.monotonic(), 0
while time.monotonic() - begun < seconds:
    step += 1
    before, used = time.monotonic(), time.process_time()
    for _ in range(10): sum(x * x for x in data[::4])
    print(f"step {step} loss: 2.0", flush=True)
    rows.append([before, time.monotonic(), time.process_time() - used])
json.dump(rows, open(file, "w"))
"""
STARTS = 5
WARM_SECONDS, MEASURED_SECONDS = 2.0, 4.0
#: Of a turn, what does not count: processes stop and continue, and what waited is written.
SETTLE_SECONDS = 0.25
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
    """Mean times of a step, s."""

    wall: float
    cpu: float


Pair = tuple[Steps, Steps]


def mean_steps(rows: list[list[float]], begin: float, end: float) -> Steps:
    """Of the steps that lie between two moments.

    Args:
        rows: begin, end and processor time of each step.
        begin: on the monotonic clock.
        end: on the same clock.
    """
    inside = [row for row in rows if row[0] >= begin and row[1] <= end]
    wall = statistics.fmean(after - before for before, after, _ in inside)
    return Steps(wall, statistics.fmean(used for *_, used in inside))


def job(prefix: list[str], file: Path, seconds: float) -> list[str]:
    return [*prefix, sys.executable, "-c", STEP, str(file), str(seconds)]


def whole_job(prefix: list[str], env: dict[str, str], folder: Path) -> Steps:
    file = folder / "steps.json"
    command = job(prefix, file, WARM_SECONDS + MEASURED_SECONDS)
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True)
    rows = json.loads(file.read_text())
    return mean_steps(rows, rows[0][0] + WARM_SECONDS, math.inf)


def jobs_in_pairs(pairs: int, env: dict[str, str], folder: Path) -> tuple[list[Pair], list[Pair]]:
    """Pairs of with and without, and of two neighbors without."""
    ours: list[Steps] = []
    plain: list[Steps] = []
    for number in range(pairs):
        for prefix in (RUN, []) if number % 2 else ([], RUN):
            (ours if prefix else plain).append(whole_job(prefix, env, folder))
    # without, with | with, without | without, with: the second and the third stand side by side
    neighbors = [(plain[n], plain[n + 1]) for n in range(1, pairs - 1, 2)]
    return list(zip(ours, plain, strict=True)), neighbors


def one_job_in_turns(pairs: int, env: dict[str, str], folder: Path) -> tuple[list[Pair], float]:
    """The same within one job, and the share of a core that dsdoctor's processes take."""
    file, turns = folder / "steps.json", []
    total = WARM_SECONDS + 2 * pairs * (MEASURED_SECONDS + SETTLE_SECONDS) + 1
    used, watched = 0.0, 0.0
    command = job(RUN, file, total)
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL) as child:
        time.sleep(WARM_SECONDS)
        for number in range(pairs):
            spans: dict[bool, tuple[float, float]] = {}
            for running in (True, False) if number % 2 else (False, True):
                pids = ours(child.pid)
                for pid in pids:
                    os.kill(pid, signal.SIGCONT if running else signal.SIGSTOP)
                time.sleep(SETTLE_SECONDS)
                begin, before = time.monotonic(), cpu(pids)
                time.sleep(MEASURED_SECONDS)
                spans[running] = (begin, time.monotonic())
                used += cpu(pids) - before
                watched += MEASURED_SECONDS * running
            turns.append(spans)
        for pid in ours(child.pid):
            os.kill(pid, signal.SIGCONT)
    rows = json.loads(file.read_text())
    found = [(mean_steps(rows, *spans[True]), mean_steps(rows, *spans[False])) for spans in turns]
    return found, used / watched


def with_interval(values: list[float]) -> str:
    """The median and its 95 % interval by rank; of fewer than six values, all that were seen.

    >>> with_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    '3.500 (1.000 to 6.000)'
    """
    ranked, count = sorted(values), len(values)
    out, tail = 0, 0.0  # how many may lie beyond each end
    while (tail := tail + math.comb(count, out) / 2**count) <= 0.025:
        out += 1
    place = max(0, out - 1)
    first, last = ranked[place], ranked[-1 - place]
    return f"{statistics.median(values):.3f} ({first:.3f} to {last:.3f})"


def print_pairs(title: str, pairs: list[Pair]) -> None:
    ratios = {
        name: with_interval([getattr(a, name) / getattr(b, name) for a, b in pairs])
        for name in ("wall", "cpu")
    }
    print(f"{title}, {len(pairs)} pairs: wall {ratios['wall']}, processor {ratios['cpu']}")


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
    parser.add_argument("--pairs", type=int, default=15)
    pairs = max(3, parser.parse_args().pairs)  # fewer have no two neighbors without
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "DSDOCTOR_RUNS": folder}
        # with byte code, as pip installs dsdoctor
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        jobs, neighbors = jobs_in_pairs(pairs, env, Path(folder))
        turns, taken = one_job_in_turns(pairs, env, Path(folder))
        starts = [seconds([*RUN, "true"], env) - seconds(["true"], env) for _ in range(STARTS)]
        share, memory = many_ranks(env)
        took, peak, whole, kept = flood(env, Path(folder))
    step = statistics.median(without.wall for _, without in jobs)
    print(f"step of {1000 * step:.1f} ms, with / without: median of the pairs and 95 % interval")
    print_pairs("jobs in pairs", jobs)
    print_pairs("  without / without", neighbors)
    print_pairs("one job in turns", turns)
    print(f"beside this job dsdoctor's processes take {taken:.2%} of a core")
    print(f"start: {statistics.median(starts):.2f} s beyond the command's own")
    print(f"64 ranks: {share:.1%} of a core, {memory:.0f} MiB (proportional set size)")
    state = "whole" if whole else "NOT whole"
    print(f"1 GiB of output: {took:.1f} s, {state}, {peak:.0f} MiB, {kept:.1f} MiB kept on disk")
    print(f"load while measuring: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
