"""Sends signals to each command at random moments of its own time, and says what is left.

    python benchmarks/signals.py --times 50 [--seed 1] [--only smoke] [--each] [--hosts 2]
        [--ranks 1] [--extensions FOLDER]

`--each` sends so many of each signal. `--hosts` lets `fleet check` examine so many hosts over ssh:
network and process namespaces of this machine, whose processes count as well (root, sshd).
"""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "checks")]

if TYPE_CHECKING:
    from tests.support.signals import Place


@contextlib.contextmanager
def hosts(count: int) -> Iterator[Place]:
    """Hosts h1 … hN, and the place from which they are examined."""
    from tests.fleet.hosts import Hosts
    from tests.support.folders import let_others_in
    from tests.support.signals import Place

    with tempfile.TemporaryDirectory(prefix="dsd-hosts-") as name:
        folder = Path(name)
        let_others_in(folder)
        made = Hosts(folder, count, 79)
        try:
            made.up()
            before = set(made.processes())
            yield Place(
                ("ip", "netns", "exec", made.control),
                {"HOME": str(folder)},
                lambda: [line for line in made.processes() if line not in before],
            )
        finally:
            made.down()


def main() -> int:
    """Tries every command so many times."""
    from tests.support import signals

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for all to be gone")
    parser.add_argument("--each", action="store_true", help="so many times of each signal")
    parser.add_argument("--hosts", type=int, default=0, help="hosts for `fleet check`")
    parser.add_argument("--ranks", type=int, default=2, help="CPU ranks of `smoke`")
    parser.add_argument(
        "--extensions", type=Path, help="compiled operators of DeepSpeed; each attempt gets a copy"
    )
    given = parser.parse_args()
    # a shell that starts this in the background has Ctrl-C ignored, and programs inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    draw = random.Random(given.seed)
    failed = 0
    with hosts(given.hosts) if given.hosts else contextlib.nullcontext(signals.HERE) as far:
        for argv in signals.COMMANDS:
            if given.only and argv[0] not in given.only.split(","):
                continue
            words, place = argv, signals.HERE
            if argv[0] == "smoke":
                words = signals.with_ranks(argv, given.ranks)
            if argv[0] == "fleet" and given.hosts:
                words, place = signals.over_ssh(argv, given.hosts, far), far
            with tempfile.TemporaryDirectory() as folder:
                at = signals.with_extensions(place, given.extensions, Path(folder))
                seconds = signals.undisturbed(words, Path(folder), at)
            each = signals.SIGNALS * given.times if given.each else ()
            numbers = each or [draw.choice(signals.SIGNALS) for _ in range(given.times)]
            bad, met = 0, Counter[str]()
            statuses: dict[str, Counter[str]] = {}
            for number in numbers:
                delay = draw.uniform(0.02, seconds)
                with tempfile.TemporaryDirectory() as folder:
                    at = signals.with_extensions(place, given.extensions, Path(folder))
                    ended = signals.attempt(words, number, delay, Path(folder), given.limit, at)
                met[number.name] += ended.met
                if ended.met:
                    statuses.setdefault(number.name, Counter())[str(ended.status)] += 1
                if ended.left:
                    bad += 1
                    print(f"{' '.join(words)}: {number.name} after {delay:.2f} s: {ended}")
            shown = ", ".join(f"{name} {count}" for name, count in met.items())
            print(
                f"{' '.join(words)} ({seconds:.2f} s): {len(numbers)} times, {met.total()} of them "
                f"met it ({shown}), {bad} with something left; statuses: "
                + ", ".join(f"{name} {dict(rows)}" for name, rows in statuses.items()),
                flush=True,
            )
            failed += bad
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
