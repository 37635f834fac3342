"""Fuzzes `diagnose` for a while: atheris where it is installed, random mutations without it.

    python benchmarks/diagnose_fuzz.py --seconds 3600 [--seed 1] [--engine atheris]

Prints how many inputs were tried and the slowest of them; a crash, a broken rule of
`tests/logs/test_hostile.py::check` or an input of more than ten seconds ends it with status 1 and
leaves the input in a file.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "checks")]

SLOWEST_SECONDS = 10.0


def seeds() -> list[bytes]:
    """Beginnings of the provoked logs and all examples of all signatures."""
    from tests.logs.test_hostile import ATTACKS, EXAMPLES

    logs = sorted((ROOT / "tests" / "logs" / "provoked" / "logs").glob("*.log"))
    found = [path.read_bytes()[:4000] for path in logs]
    return [*found, *(text.encode("utf-8", "replace") for text in (*EXAMPLES, *ATTACKS))]


def mutate(draw: random.Random, pool: list[bytes]) -> bytes:
    """A few seeds cut, joined, repeated, with bytes flipped."""
    data = bytearray()
    for _ in range(draw.randint(1, 6)):
        piece = draw.choice(pool)
        start = draw.randrange(len(piece) + 1)
        data += piece[start : start + draw.randint(1, 2000)] * draw.choice((1, 1, 1, 2, 30))
        data += draw.choice((b"", b"\n", b"\r", b" ", b"\0", b"\x1b["))
    for _ in range(draw.randint(0, 20)):
        if data:
            data[draw.randrange(len(data))] = draw.randrange(256)
    return bytes(data[:200_000])


class Judge:
    """Tries inputs and keeps the tally."""

    def __init__(self) -> None:
        from tests.logs.test_hostile import check

        self.check = check
        self.tried = 0
        self.slowest = 0.0

    def __call__(self, data: bytes) -> None:
        """Tries one input; one that breaks a rule is kept in a file."""
        begun = time.perf_counter()
        try:
            self.check(data)
            seconds = time.perf_counter() - begun
            assert seconds < SLOWEST_SECONDS, f"{seconds:.1f} s"
        except Exception:  # whatever it is, the input is kept
            path = Path(f"fuzz-{abs(hash(data)):x}.bin")
            path.write_bytes(data)
            print(f"broken by {path}", file=sys.stderr)
            raise
        self.tried += 1
        self.slowest = max(self.slowest, seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=["random", "atheris"], default="random")
    options = parser.parse_args()
    if options.engine == "atheris":
        return with_atheris(options.seconds)
    pool = seeds()
    judge = Judge()
    draw = random.Random(options.seed)
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        judge(mutate(draw, pool))
    print(f"random: {judge.tried} inputs in {options.seconds:.0f} s, slowest {judge.slowest:.2f} s")
    return 0


def with_atheris(seconds: float) -> int:
    """Guided by coverage; atheris prints its own figures."""
    import tempfile

    import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]

    fuzzer: Any = atheris
    with fuzzer.instrument_imports(include=["dsdoctor.logs", "dsdoctor.report"]):
        judge = Judge()  # imports them: what is imported earlier is not watched
    folder = Path(tempfile.mkdtemp(prefix="diagnose_fuzz_"))
    for number, data in enumerate(seeds()):
        (folder / str(number)).write_bytes(data)
    argv = [sys.argv[0], f"-max_total_time={int(seconds)}", "-max_len=20000", str(folder)]
    fuzzer.Setup(argv, judge)
    fuzzer.Fuzz()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
