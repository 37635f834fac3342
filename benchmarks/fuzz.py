"""Fuzzes all that reads data from outside, with random mutations, for a while.

    python benchmarks/fuzz.py --seconds 600 [--seed 1] [--only snapshot,config]

Prints for each target how many inputs were tried and the slowest. An exception, an input of more
than SLOWEST_SECONDS or memory beyond MOST_MIB ends it with status 1 and leaves the input in a file.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "checks")]

SLOWEST_SECONDS = 10.0
MOST_MIB = 512
LONGEST = 100_000


def mutate(draw: random.Random, seeds: list[bytes], words: tuple[bytes, ...]) -> bytes:
    """Seeds cut, joined, with words inserted, pieces repeated, bytes and digits changed."""
    data = bytearray(draw.choice(seeds))
    for _ in range(draw.choice((0, 1, 1, 2, 3, 6, 12))):
        at = draw.randrange(len(data) + 1)
        way = draw.randrange(6)
        end = min(len(data), at + draw.choice((1, 2, 8, 60, 400)))
        if way == 0:
            data[at:at] = draw.choice(words)
        elif way == 1:
            del data[at:end]
        elif way == 2:
            data[at:at] = data[at:end] * draw.choice((1, 2, 40))
        elif way == 3:
            data[at:end] = draw.choice(words)
        elif way == 4 and data:
            data[at % len(data)] = draw.randrange(256)
        else:
            other = draw.choice(seeds)
            start = draw.randrange(len(other) + 1)
            data[at:at] = other[start : start + 400]
    return bytes(data[:LONGEST])


def main() -> int:
    """Fuzzes until the time is over."""
    from tests.support.fuzz_targets import TARGETS, WORDS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    chosen = {n: t for n, t in TARGETS.items() if not given.only or n in given.only.split(",")}
    tried, slowest = dict.fromkeys(chosen, 0), dict.fromkeys(chosen, 0.0)
    draw = random.Random(given.seed)
    end = time.monotonic() + given.seconds
    failed = 0
    while time.monotonic() < end:
        for name, (target, seeds) in chosen.items():
            data = mutate(draw, seeds, WORDS)
            begun = time.process_time()
            why = ""
            try:
                target(data)
            except Exception:  # noqa: BLE001
                why = traceback.format_exc()
            spent = time.process_time() - begun
            tried[name] += 1
            slowest[name] = max(slowest[name], spent)
            if spent > SLOWEST_SECONDS:
                why = f"{spent:.1f} s"
            if why:
                path = Path(f"fuzz-{name}-{tried[name]}.bin")
                path.write_bytes(data)
                print(f"{name}: {path}\n{why}", flush=True)
                failed += 1
        if failed >= 5:
            break
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    for name, count in tried.items():
        print(f"{name:<12} {count:>8} inputs, slowest {slowest[name]:.2f} s")
    print(f"{sum(tried.values())} inputs, {failed} failures, at most {peak} MiB")
    return 1 if failed or peak > MOST_MIB else 0


if __name__ == "__main__":
    sys.exit(main())
