"""Sends signals to each command at random moments, and says what is left.

python benchmarks/signals.py --times 50 [--seed 1] [--only smoke]
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "checks")]


def main() -> int:
    """Tries every command so many times."""
    from tests.support import signals

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for all to be gone")
    given = parser.parse_args()
    # a shell that starts this in the background has Ctrl-C ignored, and programs inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    draw = random.Random(given.seed)
    failed = 0
    for argv in signals.COMMANDS:
        if given.only and argv[0] not in given.only.split(","):
            continue
        bad = 0
        for _ in range(given.times):
            number, delay = signals.moments(draw, argv)
            with tempfile.TemporaryDirectory() as folder:
                status, left = signals.attempt(argv, number, delay, Path(folder), given.limit)
            if left:
                bad += 1
                print(f"{' '.join(argv)}: {number.name} after {delay:.2f} s: {status}, {left}")
        print(f"{' '.join(argv):<60} {given.times} times, {bad} with something left", flush=True)
        failed += bad
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
