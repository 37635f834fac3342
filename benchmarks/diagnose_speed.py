"""Speed and memory of `diagnose`, beside `grep -F -f anchors` in the same run.

    python benchmarks/diagnose_speed.py               # MB/s of both engines on two kinds of log
    python benchmarks/diagnose_speed.py --pipe 10     # 10 GB through a pipe: MB/s, peak memory
    python benchmarks/diagnose_speed.py --ranks 1024  # 2 MB from each rank: the first failure

With WITHOUT_FAST=1 in the environment the last two do without the extra `fast`. MB are 10^6 bytes.
The first is of processor time, the best of three, so that a loaded machine can be measured too.
The logs are made here, with a seed: `quiet` holds no anchor, `typical` is the same with one warning
in a hundred lines, the start of a real DeepSpeed run in front and a real death at its end (both
from tests/logs/provoked).
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "checks")]

from dsdoctor import packs
from dsdoctor.logs import Source, signatures_of
from dsdoctor.logs.knowledge import Known
from dsdoctor.logs.necessary import necessary
from dsdoctor.logs.scan import Scanner

PROVOKED = ROOT / "tests" / "logs" / "provoked" / "logs"
WORDS = re.findall(
    r"\w+",
    "accuracy allocated attention batch buffer cached checkpointing corpus decay "
    "elapsed english epoch evaluation finished gradient layer metrics model norm "
    "perplexity pinned prefetch remaining reserved sample saving schedule seconds "
    "sequence shard started throughput tokens warmup wikipedia worker ",
)
WARNINGS = (
    "/opt/venv/lib/python3.11/site-packages/torch/utils/checkpoint.py:295: FutureWarning: old",
    "[INFO] [loss_scaler.py:190:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step.",
    "[WARNING] [stage3.py:2114:step] 2 pytorch allocator cache flushes since last step",
    "node-3:123:456 [2] NCCL INFO comm 0x55 rank 3 nranks 8 cudaDev 3 - Init COMPLETE",
)


def line(draw: random.Random, step: int, now: str) -> str:
    """A line of a healthy run."""
    kind = step % 10
    number = draw.random
    if kind < 3:
        return (
            f"[{now},{draw.randint(0, 999):03}] [INFO] [logging.py:96:log_dist] [Rank 0] "
            f"step={step}, skipped=0, lr=[{number() * 1e-4}], mom=[[0.9, 0.95]]"
        )
    if kind < 5:
        return (
            f"{{'loss': {number() * 9:.4f}, 'grad_norm': {number() * 9}, "
            f"'learning_rate': {number() * 1e-5}, 'epoch': {step / 9999:.2f}}}"
        )
    if kind < 6:
        return (
            f"[{now},{draw.randint(0, 999):03}] [INFO] [timer.py:264:stop] epoch=0/micro_step="
            f"{step}/global_step={step}, RunningAvgSamplesPerSec={number() * 90}, "
            f"CurrSamplesPerSec={number() * 90}, MemAllocated={number() * 60:.2f}GB"
        )
    if kind < 7:
        words = " ".join(draw.choice(WORDS) for _ in range(draw.randint(5, 14)))
        return f"{now} | INFO | trainer | {words} {draw.randint(0, 99999)}"
    if kind < 8:
        return (
            f"node-{draw.randint(0, 31)}:{draw.randint(1000, 99999)}:{draw.randint(1000, 99999)} "
            f"[{draw.randint(0, 7)}] NCCL INFO Channel {draw.randint(0, 31):02}/32 : "
            f"{draw.randint(0, 7)}[{draw.randint(0, 7)}] -> 1[1] via P2P/CUMEM/read"
        )
    if kind < 9:
        bar = "█" * draw.randint(0, 20)
        return f"\r {draw.randint(0, 99):2}%|{bar:20}| {step}/99999 [{number():.2f}it/s]"
    return f"[{now}] [INFO] [utils.py:782:see_memory_usage] MA {number() * 40:.2f} GB  Max_MA 61 GB"


def log(size: int, *, typical: bool, seed: int = 1) -> bytes:
    """A log of about `size` bytes."""
    draw = random.Random(seed)
    now = dt.datetime(2026, 1, 5, 8, tzinfo=dt.timezone.utc)
    lines: list[str] = []
    have = step = 0
    while have < size:
        step += 1
        now += dt.timedelta(milliseconds=draw.randint(100, 3000))
        text = line(draw, step, f"{now:%Y-%m-%d %H:%M:%S}")
        if typical and step % 100 == 0:
            text = draw.choice(WARNINGS)
        lines.append(text)
        have += len(text) + 1
    body = "\n".join(lines).encode() + b"\n"
    if typical:
        body = (PROVOKED / "ok_stage1.log").read_bytes() + body
        body += (PROVOKED / "memory_oom_kill_bare.log").read_bytes()
    return body


def known() -> list[Known]:
    return [Known(*row) for row in signatures_of(packs.load(builtin_only=True))]


def anchors(folder: Path) -> Path:
    """What grep is given: the anchors of all signatures, one a line."""
    path = folder / "anchors"
    texts = sorted({text for one in known() for text in necessary(one.signature.pattern)})
    path.write_text("\n".join(texts) + "\n")
    return path


def grep(path: Path, patterns: Path) -> float:
    """Seconds of processor time that `grep -c -F -f` takes in the C locale, best of three."""
    argv = ["grep", "-c", "-F", "-f", str(patterns), str(path)]
    env = {**os.environ, "LC_ALL": "C"}
    best = 1e9
    for _ in range(3):
        begun = _children()
        # with /dev/null as its output, grep would stop at the first line that matches
        subprocess.run(argv, env=env, stdout=subprocess.PIPE, check=False)
        best = min(best, _children() - begun)
    return best


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def engines() -> Iterator[str]:
    for name in ("hyperscan", "words"):
        try:
            yield Scanner([], name).engine
        except ImportError:
            print(f"{name}: not installed")


def single(folder: Path, megabytes: int) -> None:
    patterns = anchors(folder)
    signatures = known()
    for kind in ("quiet", "typical"):
        path = folder / kind
        path.write_bytes(log(megabytes * 10**6, typical=kind == "typical"))
        size = path.stat().st_size / 1e6
        rival = grep(path, patterns)
        print(f"{kind}: {size:.0f} MB; grep -F -f anchors {size / rival:.0f} MB/s")
        for name in engines():
            best = 1e9
            for _ in range(3):
                scanner = Scanner(signatures, name)
                begun = time.process_time()
                scan = scanner.scan(Source(name=str(path), path=path))
                best = min(best, time.process_time() - begun)
            print(
                f"  {name:10} {size / best:5.0f} MB/s = {rival / best:.2f} of grep's speed; "
                f"{scan.lines} lines, {len(scan.hits)} hits, {len(scan.errors)} exceptions"
            )


def command(*arguments: str) -> list[str]:
    """`dsdoctor diagnose` that tells the peak of its own memory (KiB) on stderr when it ends."""
    start = f"""
import os, sys
if os.environ.get("WITHOUT_FAST"):
    sys.modules["hyperscan"] = None
sys.path[:0] = {[str(ROOT), str(ROOT / "checks")]!r}
from dsdoctor.__main__ import main
code = main()
peak = [row.split()[1] for row in open("/proc/self/status") if row.startswith("VmHWM")]
print("peak", peak[0], file=sys.stderr)
raise SystemExit(code)
"""
    return [sys.executable, "-c", start, "diagnose", *arguments]


def _peak(errors: bytes) -> float:
    return int(errors.split()[-1]) / 1024


def pipe(gigabytes: float) -> None:
    """Feeds a log without end through a pipe and tells the peak of the child's memory."""
    chunk = log(64 * 10**6, typical=False)
    tail = log(10**6, typical=True)
    child = subprocess.Popen(
        command("-", "--format", "json"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdin is not None
    begun = time.perf_counter()
    sent = 0
    while sent < gigabytes * 1e9:
        sent += child.stdin.write(chunk)
    sent += child.stdin.write(tail)
    output, errors = child.communicate()
    seconds = time.perf_counter() - begun
    answer = json.loads(output)
    print(
        f"pipe: {sent / 1e9:.2f} GB in {seconds:.1f} s = {sent / 1e6 / seconds:.0f} MB/s, "
        f"peak {_peak(errors):.0f} MiB, {answer['lines']} lines, "
        f"{answer['outcome']}: {[cause['condition'] for cause in answer['causes']]}"
    )


def ranks(folder: Path, count: int) -> None:
    """A folder of rank logs, 2 MB each; rank 733 died first, the others by its time-out."""
    quiet = log(2 * 10**6, typical=False)
    bad = min(733, count - 1)
    for rank in range(count):
        second = 40 if rank == bad else 50 + rank % 9
        text = (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
            if rank == bad
            else "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)"
        )
        with (folder / f"20260105_rank{rank}.log").open("wb") as stream:
            stream.write(quiet)
            stream.write(f"[2026-01-05 23:00:{second}] {text}\n".encode())
    size = sum(path.stat().st_size for path in folder.iterdir())
    begun = time.perf_counter()
    done = subprocess.run(
        command(str(folder), "--format", "json"), capture_output=True, check=False
    )
    seconds = time.perf_counter() - begun
    cause = json.loads(done.stdout)["causes"][0]
    print(
        f"ranks: {count} files, {size / 1e9:.2f} GB in {seconds:.1f} s = {size / 1e6 / seconds:.0f}"
        f" MB/s, peak {_peak(done.stderr):.0f} MiB; first: {cause['condition']} on rank "
        f"{cause['evidence'][0]['rank']} (made so: rank {bad})"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100, help="size of the single logs")
    parser.add_argument("--pipe", type=float, metavar="GB")
    parser.add_argument("--ranks", type=int, metavar="N")
    parser.add_argument("--folder", type=Path, help="where logs are made [the temporary folder]")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="diagnose_speed_", dir=options.folder))
    try:
        if options.pipe:
            pipe(options.pipe)
        elif options.ranks:
            ranks(folder, options.ranks)
        else:
            single(folder, options.megabytes)
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
