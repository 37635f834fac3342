"""Short jobs over two nodes of a real Slurm while faults come and go, each accounted for.

    python benchmarks/soak_slurm.py --jobs 60 --seed 1

Needs root and Slurm (tests/system-deps.sh). The Slurm is the one of tests/slurm; the GPUs are a
simulated NVML. Faults: a lost GPU, a driver that hangs, a deleted dsdoctor, a full disk. After each
job the fault may be healed. What must hold:

- a node drains only while a GPU of the job is lost, and then the job does not run there;
- any other fault lets the job run;
- `dsdoctor hook status` counts as many prologs as there were jobs (a full disk may cost a line);
- at the end both nodes are idle, and no process or folder of a run is left.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.nvml import scenarios
from tests.slurm.cluster import NODES, Cluster, lacking

FAULTS = ("none", "none", "gpu-lost", "driver-hangs", "doctor-deleted", "disk-full")
BUDGET = "5"
HANG_SECONDS = 8


class Node:
    """One node, its fault, and what was seen on it."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.fault = "none"
        self.jobs = 0
        self.on_full_disk = 0

    @property
    def run(self) -> Path:
        """Its run folder."""
        return self.cluster.folder / self.name / "run"

    def inject(self, fault: str) -> None:
        """Heals what was wrong and breaks something else."""
        self._heal()
        self.fault = fault
        scenario: Any = scenarios.rtx_3090_x2_nvlink()
        if fault == "gpu-lost":
            scenario["fail"] = {"*@0": 15, "*@1": 15}
        elif fault == "driver-hangs":
            scenario["hang"] = {"nvmlInit": HANG_SECONDS}
        self.cluster.machine(self.name, scenario)
        if fault == "doctor-deleted":
            self.cluster.delete_dsdoctor(self.name)
        elif fault == "disk-full":
            with contextlib.suppress(OSError), (self.run / "filler").open("wb", 0) as file:
                while True:
                    file.write(b"x" * 4096)

    def _heal(self) -> None:
        (self.run / "filler").unlink(missing_ok=True)
        if self.fault == "doctor-deleted":
            self.cluster.install("--budget", BUDGET)
            for other in NODES:  # both nodes were installed anew
                if other != self.name and OTHERS[other].fault == "doctor-deleted":
                    self.cluster.delete_dsdoctor(other)


OTHERS: dict[str, Node] = {}


def job(node: Node, wrong: list[str]) -> str:
    """Runs one job on a node; what happened in a word."""
    node.jobs += 1
    node.on_full_disk += node.fault == "disk-full"
    done = node.cluster.srun("-w", node.name, "--gres=gpu:2", "echo", "it runs")
    ran = "it runs" in done.stdout
    drained = "DRAIN" in node.cluster.state(node.name)[0]
    faulty = node.fault == "gpu-lost"
    if drained and not faulty:
        wrong.append(f"job {node.jobs}: a sound {node.name} ({node.fault}) was drained")
    if ran and faulty:
        wrong.append(f"job {node.jobs}: ran on {node.name}, whose GPUs are lost")
    if not ran and not faulty:
        wrong.append(
            f"job {node.jobs}: {node.name} ({node.fault}) ran nothing: {done.stderr[:200]}"
        )
    return "ran" if ran else "blocked"


def accounts(node: Node, wrong: list[str]) -> dict[str, Any]:
    """What `hook status` says, against what was done."""
    rows = [row for row in node.cluster.status(node.name) if row["hook"] == "slurm-prolog"]
    row = rows[0] if rows else {"ran": 0}
    if not node.jobs - node.on_full_disk <= row["ran"] <= node.jobs:
        wrong.append(f"{node.name}: {node.jobs} prologs, but `hook status` counts {row['ran']}")
    left = sorted(path.name for path in node.run.glob("run.*"))
    if left:
        wrong.append(f"{node.name}: left behind: {', '.join(left)}")
    return row


def soak(cluster: Cluster, jobs: int, dice: random.Random) -> list[str]:
    """Runs the jobs; returns what must not have happened."""
    wrong: list[str] = []
    seen: Counter[tuple[str, str]] = Counter()
    for name in NODES:
        OTHERS[name] = Node(cluster, name)
    for number in range(jobs):
        node = OTHERS[dice.choice(NODES)]
        fault = dice.choice(FAULTS)
        node.inject(fault)
        word = job(node, wrong)
        seen[fault, word] += 1
        if "DRAIN" in cluster.state(node.name)[0]:
            node.inject("none")
            cluster.resume()
        print(f"{number + 1:4} {node.name} {fault:15} {word}", flush=True)
    for (fault, word), count in sorted(seen.items()):
        print(f"{fault:15} {word:8} {count}")
    for node in OTHERS.values():
        node.inject("none")
        row = accounts(node, wrong)
        print(f"{node.name}: {node.jobs} jobs ({node.on_full_disk} on a full disk); status: {row}")
    cluster.resume()
    wait_for_workers(cluster, wrong)
    return wrong


def wait_for_workers(cluster: Cluster, wrong: list[str]) -> None:
    """Workers that were left with a hanging driver end when it answers."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        listed = subprocess.run(
            ["ps", "-eww", "-o", "args"], capture_output=True, text=True, check=True
        ).stdout
        if not any(
            "dsdoctor.hook" in line and str(cluster.folder) in line for line in listed.splitlines()
        ):
            return
        time.sleep(0.5)
    wrong.append("a worker was still there after 60 s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if os.geteuid() != 0 or lacking():
        sys.exit(f"needs root and Slurm; not found: {', '.join(lacking()) or 'root'}")
    folder = Path(tempfile.mkdtemp(prefix="dsdoctor-soak-"))
    folder.chmod(0o755)
    cluster = Cluster(folder)
    disks = [folder / name / "run" for name in NODES]
    begun = time.monotonic()
    try:
        for name, disk in zip(NODES, disks, strict=True):
            disk.mkdir(parents=True)
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=512k,mode=755", "soak", str(disk)], check=True
            )
            cluster.machine(name, scenarios.rtx_3090_x2_nvlink())
        cluster.install("--budget", BUDGET)
        cluster.start()
        wrong = soak(cluster, asked.jobs, random.Random(asked.seed))
    finally:
        cluster.stop()
        for disk in disks:
            subprocess.run(["umount", "-l", str(disk)], check=False)
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{asked.jobs} jobs, seed {asked.seed}, {time.monotonic() - begun:.0f} s")
    print("\n".join(wrong) or "every job was decided as it should be, and is accounted for")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
