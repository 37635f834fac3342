"""Fuzzes all that reads data from outside: random mutations, or atheris, guided by coverage.

    python benchmarks/fuzz.py --seconds 600 [--seed 1] [--only snapshot,config] [--engine atheris]

Prints for each target how many inputs were tried and the slowest. An exception, an input of more
than SLOWEST_SECONDS or memory beyond MOST_MIB ends it with status 1 and leaves the input in a file.
With atheris each target gets the same share of the time in a process of its own, since libFuzzer
ends the process that it runs in.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "checks")]

SLOWEST_SECONDS = 10.0
#: Wall time, beyond all that a loaded machine can make of it.
HANGS_SECONDS = 120
#: Resident, what atheris itself holds included.
MOST_MIB = 256
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


def guided(names: list[str], options: argparse.Namespace) -> int:
    """Each target in a child; its figures are those that libFuzzer prints."""
    total = failed = highest = 0
    for name in names:
        end = time.monotonic() + options.seconds / len(names)
        while (left := int(end - time.monotonic())) > 0 and failed < 5:
            argv = [sys.executable, __file__, "--engine", "atheris-child", "--only", name]
            argv += ["--seconds", str(left), "--seed", str(options.seed)]
            # libFuzzer ends the child where it stands, so what it has written is removed here
            with tempfile.TemporaryDirectory(prefix="dsdoctor-fuzz-") as folder:
                env = {**os.environ, "TMPDIR": folder}
                done = subprocess.run(argv, capture_output=True, check=False, env=env)
            said, words = (out.decode("utf-8", "replace") for out in (done.stdout, done.stderr))
            found = re.findall(r"^stat::(\w+):\s+(\d+)$", words, re.MULTILINE)
            stats = {key: int(value) for key, value in found}
            tried, peak = stats.get("number_of_executed_units", 0), stats.get("peak_rss_mb", 0)
            slowest = stats.get("slowest_unit_time_sec", 0)
            total, highest = total + tried, max(highest, peak)
            print(f"{name:<12} {tried:>8} inputs, slowest {slowest} s, {peak} MiB", flush=True)
            if done.returncode:
                failed += 1
                print(f"{name}: status {done.returncode}", said[-3000:], words[-1500:], sep="\n")
    print(f"{total} inputs, {failed} failures, at most {highest} MiB (atheris itself included)")
    return 1 if failed or highest > MOST_MIB else 0


def with_atheris(name: str, seconds: float, seed: int) -> None:
    """Fuzzes one target; does not return, since libFuzzer ends the process."""
    import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]

    fuzzer: Any = atheris
    with fuzzer.instrument_imports(include=["dsdoctor", "dsdoctor_checks"]):
        from tests.support.fuzz_targets import (
            TARGETS,
            WORDS,
        )  # what is imported earlier is not seen

        target, seeds = TARGETS[name]
        for data in seeds:  # loads what is imported when it is first used, the packs above all
            target(data)

    def judged(data: bytes) -> None:
        begun = time.process_time()
        target(data)
        spent = time.process_time() - begun
        if spent > SLOWEST_SECONDS:
            raise TimeoutError(f"{spent:.1f} s of CPU time")

    folder = Path(tempfile.mkdtemp(prefix=f"fuzz_{name}_"))
    (folder / "corpus").mkdir()
    for number, data in enumerate(seeds):
        (folder / "corpus" / str(number)).write_bytes(data)
    words = ('"' + "".join(f"\\x{byte:02x}" for byte in word) + '"' for word in WORDS)
    (folder / "words").write_text("\n".join(words) + "\n")
    argv = [
        sys.argv[0], f"-max_total_time={int(seconds)}", f"-seed={seed}", f"-max_len={LONGEST}",
        f"-timeout={HANGS_SECONDS}", f"-rss_limit_mb={MOST_MIB}", "-print_final_stats=1",
        f"-dict={folder / 'words'}", f"-artifact_prefix=fuzz-{name}-", str(folder / "corpus"),
    ]  # fmt: skip
    fuzzer.Setup(argv, judged)
    fuzzer.Fuzz()


def main() -> int:
    """Fuzzes until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument(
        "--engine", choices=("random", "atheris", "atheris-child"), default="random"
    )
    given = parser.parse_args()
    if given.engine == "atheris-child":
        with_atheris(given.only, given.seconds, given.seed)
    from tests.support.fuzz_targets import TARGETS, WORDS

    chosen = {n: t for n, t in TARGETS.items() if not given.only or n in given.only.split(",")}
    if given.engine == "atheris":
        return guided(list(chosen), given)
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
            except Exception:  # noqa: BLE001  # what the fuzzer looks for
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
