"""Short jobs over two nodes of a real Slurm while faults come and go, each accounted for.

    python benchmarks/soak_slurm.py --jobs 60 --seed 1

Needs root and Slurm (tests/system-deps.sh). The Slurm is the one of tests/slurm, with the prolog
and the epilog of `hook install`; the GPUs are a simulated NVML. Faults: a lost GPU, a driver that
hangs, a deleted dsdoctor, a full disk, a slow network disk (simulated: the interpreter starts 1 s
late, or when the budget is over). After each job the fault may be healed. Each node has its own
jobs and faults, so that one waits while the other decides. The report has a line for each goal:

- no sound node drains: none whose GPUs answer, whatever else is wrong with it;
- no faulty node is used after the next prolog: no job runs where the GPUs of the job are lost. A
  prolog that was too slow for its budget lets its job pass; it must be counted as such;
- whatever may run, runs;
- every decision is accounted for: `dsdoctor hook status` counts as many prologs and epilogs as
  there were jobs (a full disk may cost a line), as many blocks as there were, each job without
  dsdoctor as one that passed without a verdict, and no run without an end;
- nothing is left behind: both nodes are idle; no folder of a run, no process; notes of jobs only
  where no dsdoctor could remove them.

It also prints the wall time of the scripts, as the gate's own log has it, by what disturbed them.
`undisturbed` is a prolog or epilog of a sound node whose previous job met neither a hanging driver
nor a slow disk (a worker of that job may still wait). The other node works at the same time, and
both share the cores of this machine.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from dsdoctor.hook import gatelog
from tests.nvml import scenarios
from tests.slurm.cluster import NODES, PROGRAMS, Cluster
from tests.support.needs import not_installed

#: What may still run when the next job begins: a worker that waits for the driver.
LASTING = ("driver-hangs", "disk-slow")
FAULTS = ("none", "none", "gpu-lost", "driver-hangs", "doctor-deleted", "disk-full", "disk-slow")
#: Goals, in the order of the report.
DRAINED, USED, RAN, ACCOUNTED, LEFT = GOALS = (
    "no sound node drained",
    "no faulty node used after the next prolog",
    "every other job ran",
    "every decision accounted for",
    "nothing left behind",
)
#: How long workers that were left with a hanging driver may take to end.
END_SECONDS = 60.0


class Wrong:
    """What must not have happened, by goal."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {goal: [] for goal in GOALS}

    def add(self, goal: str, what: str) -> None:
        """Something against a goal."""
        self._found[goal].append(what)

    def __bool__(self) -> bool:
        return any(self._found.values())

    def report(self, figures: Mapping[str, str]) -> str:
        """A line for each goal, then what was against it."""
        lines = []
        for goal, found in self._found.items():
            lines.append(f"{'FAILED' if found else 'ok':6} {goal}: {figures.get(goal, '')}")
            lines += [f"       {what}" for what in found]
        return "\n".join(lines)


class Node:
    """One node, its fault, and what was seen on it."""

    def __init__(self, cluster: Cluster, name: str, budget: float, dice: random.Random) -> None:
        self.cluster = cluster
        self.budget = budget
        self.dice = dice
        self.name = name
        self.fault = "none"
        self.before = "none"
        self.runs: set[str] = set()
        self.seconds: dict[tuple[str, str], list[float]] = {}
        self.seen: Counter[tuple[str, str]] = Counter()
        self.sound: dict[Path, str] = {}

    @property
    def jobs(self) -> int:
        """How many it was given."""
        return sum(self.seen.values())

    def count(self, fault: str = "", word: str = "") -> int:
        """Jobs that met a fault, or that ended so."""
        return sum(n for (f, w), n in self.seen.items() if fault in ("", f) and word in ("", w))

    @property
    def run(self) -> Path:
        """Its run folder."""
        return self.cluster.folder / self.name / "run"

    def inject(self, fault: str) -> None:
        """Heals what was wrong and breaks something else."""
        self._heal()
        self.before, self.fault = self.fault, fault
        scenario: Any = scenarios.rtx_3090_x2_nvlink()
        if fault == "gpu-lost":
            scenario["fail"] = {"*@0": 15, "*@1": 15}
        elif fault == "driver-hangs":
            scenario["hang"] = {"nvmlInit": self.budget + 3}
        self.cluster.machine(self.name, scenario)
        if fault == "doctor-deleted":
            self._interpreter("/nowhere/bin/python")
        elif fault == "disk-slow":
            slow = self.cluster.folder / f"slow-{self.name}"
            seconds = self.dice.choice((1, self.budget + 3))
            slow.write_text(f'#!/bin/sh\nsleep {seconds:g}\nexec {sys.executable} "$@"\n')
            slow.chmod(0o755)
            self._interpreter(str(slow))
        elif fault == "disk-full":
            with contextlib.suppress(OSError), (self.run / "filler").open("wb", 0) as file:
                while True:
                    file.write(b"x" * 4096)

    def _interpreter(self, path: str) -> None:
        for script in (self.cluster.folder / self.name).glob("*.sh"):
            self.sound[script] = script.read_text()
            script.write_text(re.sub(r"(?m)^python=.*$", f"python={path}", self.sound[script]))

    def _heal(self) -> None:
        (self.run / "filler").unlink(missing_ok=True)
        for script, text in self.sound.items():
            script.write_text(text)
        self.sound.clear()

    @property
    def disturbance(self) -> str:
        """What may make the scripts of the present job slower."""
        if self.fault == "none" and self.before in LASTING:
            return f"after {self.before}"
        return "undisturbed" if self.fault == "none" else self.fault

    def measure(self) -> None:
        """Keeps the seconds of the runs that ended since the last time."""
        for row in gatelog.read(self.run):
            if row.get("event") == "end" and row["run"] not in self.runs:
                self.runs.add(row["run"])
                key = (row["hook"], self.disturbance)
                self.seconds.setdefault(key, []).append(float(row["seconds"]))

    def resume(self) -> None:
        """Back to service, without the jobs of the other node."""
        self.cluster.run("scontrol", "update", f"nodename={self.name}", "state=resume")
        self.cluster.wait(lambda: self.cluster.state(self.name)[0] == "IDLE", "resumed")

    def settled(self) -> bool:
        """No job is on the node any more: its epilog has ended."""
        state = self.cluster.state(self.name)[0]
        return not any(word in state for word in ("COMPLETING", "ALLOCATED", "MIXED"))


def job(node: Node, wrong: Wrong) -> str:
    """Runs one job on a node; what happened in a word."""
    name = f"job {node.jobs + 1} on {node.name}"
    done = node.cluster.srun("-w", node.name, "--gres=gpu:2", "echo", "it runs")
    node.cluster.wait(node.settled, "the end of the epilog")
    node.measure()
    ran = "it runs" in done.stdout
    drained = "DRAIN" in node.cluster.state(node.name)[0]
    faulty = node.fault == "gpu-lost"
    if drained and not faulty:
        wrong.add(DRAINED, f"{name} ({node.fault}): {node.cluster.state(node.name)[1]}")
    if ran and faulty and too_slow(node):
        return "ran: over budget"
    if ran and faulty:
        wrong.add(USED, f"{name} ran, and its GPUs are lost")
    if not ran and not faulty:
        wrong.add(RAN, f"{name} ({node.fault}) ran nothing: {done.stderr[:200]}")
    return "ran" if ran else "blocked"


def too_slow(node: Node) -> bool:
    """Whether the last prolog of a node let its job pass because the budget was over."""
    rows = [row for row in gatelog.read(node.run) if row["hook"] == "slurm-prolog"]
    return rows[-1].get("cause") in ("timeout", "nvml-slow", "wrapper-timeout")


def accounts(node: Node, wrong: Wrong) -> dict[str, Any]:
    """What `hook status` says, against what was done."""
    rows = {row["hook"]: row for row in node.cluster.status(node.name)}
    none: dict[str, Any] = {"ran": 0, "passed": 0, "unjudged": {}, "blocked": {}, "killed": 0}
    unsure = node.count("disk-full")
    for hook in ("slurm-prolog", "slurm-epilog"):
        row = rows.get(hook, none)
        unjudged, blocked = sum(row["unjudged"].values()), sum(row["blocked"].values())
        ended = row["passed"] + unjudged + blocked
        counts = {
            "runs": (row["ran"], node.jobs - unsure, node.jobs),
            "runs with an end": (ended, row["ran"] - unsure, row["ran"]),
            "killed": (row["killed"], 0, 0),
        }
        if hook == "slurm-prolog":
            deleted, slow = node.count("doctor-deleted"), node.count(word="ran: over budget")
            counts["blocked"] = (blocked, *[node.count(word="blocked")] * 2)
            counts["no-interpreter"] = (row["unjudged"].get("no-interpreter", 0), deleted, deleted)
            counts["without a verdict"] = (unjudged, deleted + slow, node.jobs)
        for what, (found, least, most) in counts.items():
            if not least <= found <= most:
                expected = f"{least}" if least == most else f"{least} to {most}"
                wrong.add(ACCOUNTED, f"{node.name} {hook}: {what} {found}, expected {expected}")
    left = sorted(
        path.name for kind in ("run", "own", "worker.[0-9]*") for path in node.run.glob(f"{kind}.*")
    )
    if left:
        wrong.add(LEFT, f"{node.name}: {', '.join(left)}")
    notes = len(list(node.run.glob("job.*")))
    most = sum(rows.get("slurm-epilog", none)["unjudged"].values()) + unsure
    if notes > most:
        wrong.add(
            LEFT, f"{node.name}: {notes} notes of jobs, but only {most} epilogs could not run"
        )
    return rows


def soak(nodes: list[Node], jobs: int, wrong: Wrong) -> dict[str, str]:
    """Runs the jobs; returns the figures of each goal."""
    left = iter(range(1, jobs + 1))
    lock = threading.Lock()

    def work(node: Node) -> None:
        while True:
            with lock:
                number = next(left, None)
            if number is None:
                return
            fault = node.dice.choice(FAULTS)
            node.inject(fault)
            word = job(node, wrong)
            node.seen[fault, word] += 1
            if "DRAIN" in node.cluster.state(node.name)[0]:
                node.inject("none")
                node.resume()
            print(f"{number:4} {node.name} {fault:15} {word}", flush=True)

    def worker(node: Node) -> None:
        try:
            work(node)
        except BaseException as error:  # noqa: BLE001  # a thread that dies must not look like a good end
            wrong.add(ACCOUNTED, f"{node.name}: no more jobs after {node.jobs}: {error!r}")

    threads = [threading.Thread(target=worker, args=(node,)) for node in nodes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = sum((node.seen for node in nodes), Counter())
    for (fault, word), count in sorted(seen.items()):
        print(f"{fault:15} {word:16} {count}")
    for node in nodes:
        node.inject("none")
        print(f"{node.name}: {node.jobs} jobs ({node.count('disk-full')} on a full disk)")
        for row in accounts(node, wrong).values():
            print(f"  {row}")
    times(nodes)
    return figures(nodes)


def figures(nodes: list[Node]) -> dict[str, str]:
    """What there was of each goal."""

    def total(fault: str = "", word: str = "") -> int:
        return sum(node.count(fault, word) for node in nodes)

    jobs, lost = total(), total("gpu-lost")
    notes = sum(len(list(node.run.glob("job.*"))) for node in nodes)
    over = total("gpu-lost", "ran: over budget")
    return {
        DRAINED: f"{jobs - lost} jobs on nodes whose GPUs answer",
        USED: f"{lost} jobs, {total('gpu-lost', 'blocked')} blocked, {over} passed without a "
        "verdict because the budget was over",
        RAN: f"{jobs - lost} jobs",
        ACCOUNTED: f"{2 * jobs} prologs and epilogs, {2 * total('disk-full')} on a full disk",
        LEFT: f"no folder of a run, no process; {notes} notes of jobs whose epilog could not run",
    }


def times(nodes: list[Node]) -> None:
    """Prints how long the scripts took, by what disturbed them."""
    for key in sorted({key for node in nodes for key in node.seconds}):
        both = sorted(seconds for node in nodes for seconds in node.seconds.get(key, ()))
        one = gatelog.Summary("", key[0], seconds=both)
        print(
            f"{key[0]:13} {key[1]:19} {len(both):4} runs: p50 {one.quantile(0.5):5.2f}, "
            f"p99 {one.quantile(0.99):5.2f}, max {both[-1]:5.2f} s"
        )


def processes(folder: Path) -> list[str]:
    """Commands that run in a cluster: its folder is in their words or in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes()
                if str(folder).encode() in words + (entry / "environ").read_bytes():
                    found.append(words.replace(b"\0", b" ").decode("utf-8", "replace")[:150])
    return found


def nothing_runs(folder: Path, wrong: Wrong) -> None:
    """Workers that were left with a hanging driver end when it answers."""
    deadline = time.monotonic() + END_SECONDS
    while (found := processes(folder)) and time.monotonic() < deadline:
        time.sleep(0.5)
    for words in found:
        wrong.add(LEFT, f"still runs after {END_SECONDS:.0f} s: {words}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=float, default=5, help="seconds of prolog and epilog")
    asked = parser.parse_args()
    if os.geteuid() != 0 or not_installed(PROGRAMS):
        sys.exit(f"needs root and Slurm; not found: {', '.join(not_installed(PROGRAMS)) or 'root'}")
    folder = Path(tempfile.mkdtemp(prefix="dsdoctor-soak-"))
    folder.chmod(0o755)
    cluster = Cluster(folder)
    disks = [folder / name / "run" for name in NODES]
    begun, wrong, seen = time.monotonic(), Wrong(), {}
    try:
        for name, disk in zip(NODES, disks, strict=True):
            disk.mkdir(parents=True)
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=512k,mode=755", "soak", str(disk)], check=True
            )
            cluster.machine(name, scenarios.rtx_3090_x2_nvlink())
        cluster.install("--budget", str(asked.budget))
        cluster.install("--budget", str(asked.budget), target="epilog")
        cluster.epilog_on = True
        cluster.start()
        nodes = [
            Node(cluster, name, asked.budget, random.Random(f"{asked.seed}/{name}"))
            for name in NODES
        ]
        seen = soak(nodes, asked.jobs, wrong)
        try:
            cluster.resume()
        except AssertionError as error:
            wrong.add(LEFT, str(error))
    finally:
        cluster.stop()
        nothing_runs(folder, wrong)
        for disk in disks:
            subprocess.run(["umount", "-l", str(disk)], check=False)
        shutil.rmtree(folder, ignore_errors=True)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    asked_for = f"{asked.jobs} jobs, seed {asked.seed}, budget {asked.budget:g} s"
    print(f"{asked_for}: {time.monotonic() - begun:.0f} s, load {load}")
    print(wrong.report(seen))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
