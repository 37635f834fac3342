"""Runs the whole suite several times in a row beside busy loops, and reports what did not pass.

python benchmarks/suite_under_load.py [--runs 3] [--loops 4]

A test that depends on the speed of the machine fails here, or passes only at its second try.
`--loops 0` is for a machine that is loaded already. Each run is `.ci/run`, its fresh environment
included.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUSY = "while True: pass"
SUMMARY = re.compile(r"^=+ (.*\b(?:passed|failed|error)\b.*) in [\d.]+s")


class Load:
    """Samples the machine's load average every 15 s while a block runs."""

    def __enter__(self) -> Load:
        self.samples: list[float] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()
        return self

    def _sample(self) -> None:
        while not self._over.wait(15):
            self.samples.append(os.getloadavg()[0])

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def one_run(number: int, folder: Path) -> bool:
    """Runs the suite once; True if every test passed at the first try."""
    log = folder / f"run{number}.log"
    begun = time.monotonic()
    with log.open("wb") as output, Load() as load:
        status = subprocess.run(
            ["bash", str(ROOT / ".ci" / "run")],
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "CI": "true"},
            check=False,
        ).returncode
    minutes = (time.monotonic() - begun) / 60
    lines = log.read_text(errors="replace").splitlines()
    told = [found[1] for line in lines if (found := SUMMARY.match(line))]
    again = [line for line in lines if line.startswith(("FAILED ", "ERROR ", "RERUN "))]
    mean = statistics.mean(load.samples) if load.samples else 0.0
    print(
        f"run {number}: status {status}, {' + '.join(told) or 'no summary'}, "
        f"{minutes:.0f} minutes, mean load {mean:.1f} on {os.cpu_count()} cores ({log})"
    )
    for line in again:
        print(f"  {line}")
    sys.stdout.flush()
    return status == 0 and not again


def main() -> int:
    """Starts the loops, runs the suite, ends the loops."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--loops", type=int, default=4)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="dsdoctor-suite-"))
    loops = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(given.loops)]
    try:
        results = [one_run(number, folder) for number in range(1, given.runs + 1)]
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
