"""Long logs made of real runs: right answers and speed of `diagnose`.

    python benchmarks/diagnose_long.py [--megabytes 200] [--ranks 64] [--only A,B] [--write FILE]

The runs were recorded with `python tests/logs/long/record.py`: real torchrun, DeepSpeed, Trainer
and Slurm jobs of four CPU ranks that train a small model and then meet a real fault. Here each is
made long: the healthy steps go on for hours, on as many ranks as asked for; the failure is as it
was recorded (`tests/support/longlogs.py`). Each is read with the extra `fast` and without it.
Prints what was said, by which evidence it was decided, MB/s of processor time, the ratio to
`grep -F -f` with the same literals on the same log, and the largest memory of a reader. MB are 10^6
bytes.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "checks")]

from dsdoctor import packs
from dsdoctor.logs import anchors, diagnose, signatures_of
from dsdoctor.logs.reader import Source, find_sources
from tests.support import longlogs

SLICE = 2 << 20  # grep reads so much of a log: it takes minutes for the whole


def read(engine: str) -> int:
    """A reader of one engine: paths on standard input, a row of JSON for each line."""
    if engine == "words":
        anchors.ENGINES.pop("hyperscan")
        anchors.HyperscanMatcher = anchors.WordMatcher  # type: ignore[misc,assignment]
    known = signatures_of(packs.load(builtin_only=True))
    diagnose([Source(name="warm", data=b"warm up\n" * 200_000)], known)
    for line in sys.stdin:
        sources = find_sources(json.loads(line))
        begun = time.process_time()
        found = diagnose(sources, known)
        spent = time.process_time() - begun
        row = {
            "said": found.causes[0].condition if found.causes else found.outcome.value,
            "decided_by": found.decided_by,
            "summary": found.summary,
            "attempts": [one.ended_by for one in found.attempts],
            "seconds": spent,
            "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        print(json.dumps(row), flush=True)
    return 0


class Reader:
    """A process that reads logs with one engine."""

    def __init__(self, engine: str) -> None:
        self.child = subprocess.Popen(
            [sys.executable, __file__, "--read", engine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, paths: list[str]) -> dict[str, Any]:
        """What is said of a log."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write(json.dumps(paths) + "\n")
        self.child.stdin.flush()
        row: dict[str, Any] = json.loads(self.child.stdout.readline())
        return row

    def close(self) -> None:
        """Ends it."""
        self.child.communicate(timeout=30)


def files(paths: list[str]) -> Iterator[Path]:
    """The files of a log."""
    for text in paths:
        path = Path(text)
        yield from (p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]


def grep(literals: Path, paths: list[str], place: Path) -> float:
    """MB/s of processor time of `grep -F` on the end of the log's largest file."""
    largest = max(files(paths), key=lambda path: path.stat().st_size)
    part = place / "part"
    with largest.open("rb") as stream:
        stream.seek(max(0, largest.stat().st_size - SLICE))
        part.write_bytes(stream.read())
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    argv = ["grep", "-F", "-f", str(literals), str(part)]
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=False, env={"LC_ALL": "C"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return part.stat().st_size / 1e6 / max(spent, 1e-3)


def literals_of(place: Path) -> Path:
    """What grep is given: the literals that `diagnose` looks for."""
    from dsdoctor.logs.knowledge import Known
    from dsdoctor.logs.scan import Scanner

    scanner = Scanner([Known(*row[:5]) for row in signatures_of(packs.load(builtin_only=True))])
    path = place / "literals"
    path.write_text("\n".join(sorted(scanner.by_literal)) + "\n")
    return path


def main() -> int:
    """Reads all recorded runs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=float, default=200)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--only", default="", help="names with commas between them [all]")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--read", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        return read(options.read)
    readers = {engine: Reader(engine) for engine in ("fast", "words")}
    rows: list[str] = []
    right = 0
    sums = dict.fromkeys(("mb", *readers), 0.0)
    ratios: list[float] = []
    only = set(filter(None, options.only.split(",")))
    cases = [case for case in longlogs.cases() if not only or case.name in only]
    with tempfile.TemporaryDirectory() as base:
        literals = literals_of(Path(base))
        for case in cases:
            place = Path(base) / "log"
            paths = longlogs.write(case, place, int(options.megabytes * 1e6), options.ranks)
            size = sum(path.stat().st_size for path in files(paths)) / 1e6
            told = {engine: reader.ask(paths) for engine, reader in readers.items()}
            against = grep(literals, paths, Path(base))
            shutil.rmtree(place)
            good = all(longlogs.is_right(case, row["said"]) for row in told.values())
            right += good
            sums["mb"] += size
            speeds = {engine: size / row["seconds"] for engine, row in told.items()}
            for engine, row in told.items():
                sums[engine] += row["seconds"]
            ratios.append(speeds["words"] / against)
            said = told["words"]["said"]
            rows.append(
                f"| `{case.name}` | {said}{'' if good else ' (WRONG)'} | {size:.0f} | "
                f"{speeds['fast']:.0f} | {speeds['words']:.0f} | {speeds['fast'] / against:.1f} | "
                f"{ratios[-1]:.1f} | {max(row['mib'] for row in told.values()):.0f} |"
            )
            print(f"{rows[-1]} {told['words']['decided_by']}", flush=True)
    for reader in readers.values():
        reader.close()
    total = (
        f"{right} of {len(cases)} right; {sums['mb'] / sums['fast']:.0f} MB/s of processor time "
        f"with `fast`, {sums['mb'] / sums['words']:.0f} without"
    )
    print(total)
    if options.write:
        head = (
            "# Long logs made of real runs\n\nLast result of `python benchmarks/diagnose_long.py "
            f"--megabytes {options.megabytes:g} --ranks {options.ranks}`, "
            f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, a shared machine of "
            f"two cores: {total}.\n\nMB/s are of processor time; `×` is the ratio to `grep -F -f` "
            "with the same literals on the same log, in the same run; MiB is the largest memory of "
            "a reader so far.\n\n"
            "| run | said | MB | MB/s `fast` | MB/s | × `fast` | × | MiB |\n"
            "|---|---|---|---|---|---|---|---|\n"
        )
        options.write.write_text(head + "\n".join(rows) + "\n")
    return 0 if right == len(cases) else 1


if __name__ == "__main__":
    raise SystemExit(main())
