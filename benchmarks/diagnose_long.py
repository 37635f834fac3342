"""Long logs made from real runs: right answers and speed of `diagnose`.

    python benchmarks/diagnose_long.py [--megabytes 200] [--ranks 64] [--engine words] [--keep DIR]

Each scenario is a real run of torchrun with a few gloo ranks that train a small model on the CPU
and then fail for real: an exception, a signal, a launcher that is ended, workers that are started
anew. Its log is made long: the steps are repeated with new numbers and times as if it had trained
for hours, and what the ranks that did not fail print is repeated for as many ranks as asked for.
Prints what was said, MB/s of processor time, and by which evidence it was decided.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "checks")]

from dsdoctor import packs  # noqa: E402
from dsdoctor.logs import Source, anchors, diagnose, signatures_of  # noqa: E402

SCRIPT = """
import ctypes, datetime, logging, os, signal, sys, time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
fault, at = sys.argv[1], int(sys.argv[2])
rank = int(os.environ["RANK"]); attempt = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
form = "[%(asctime)s] [%(levelname)s] [train.py:%(lineno)d] %(message)s"
logging.basicConfig(level=logging.INFO, format=form)
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=8))
model = DDP(torch.nn.Linear(16, 16)); opt = torch.optim.SGD(model.parameters(), lr=0.1)
def lookup(batch):
    return {"input_ids": batch}["labels"]
for step in range(1, 31):
    x = torch.randn(8, 16); loss = model(x).pow(2).mean()
    loss.backward(); opt.step(); opt.zero_grad()
    if rank == 0:
        logging.info("step %d/100000 loss %.4f lr 1.0e-04", step, loss.item())
        bar = f" {step / 1000:.1%}|#    | {step}/100000 [00:{step % 60:02d}<9:59:59,  3.00it/s]"
        print(bar, end="\\n" if step % 3 else "\\r", file=sys.stderr, flush=True)
    if rank == 1 and step == at:
        if fault == "keyerror": lookup(x)
        if fault == "shape": model(torch.randn(8, 17))
        if fault == "segv": ctypes.string_at(0)
        if fault == "abort": os.abort()
        if fault == "kill": os.kill(os.getpid(), signal.SIGKILL)
        if fault == "hang": time.sleep(60)
        if fault == "exit": sys.exit(3)
        if fault == "disk": raise OSError(28, "No space left on device", "/ckpt/step30.pt")
        if fault == "restart" and attempt == 0: raise RuntimeError("transient: shard 3 is locked")
    if fault == "retry" and rank == 1 and step == 5:
        logging.warning("HTTPSConnectionPool(host='huggingface.co', port=443): "
                        "Max retries exceeded. Retrying in 1s [Retry 1/5].")
    if fault in ("retry", "restart") and rank == 1 and step == 25: lookup(x)
    if fault == "ctrlc" and rank == 0 and step == at: os.kill(os.getppid(), signal.SIGINT)
    if fault == "hangup" and rank == 0 and step == at: os.kill(os.getppid(), signal.SIGHUP)
    if fault in ("ctrlc", "hangup"): time.sleep(0.3)
print("done")
dist.destroy_process_group()
"""
STEP = re.compile(r"step (\d+)/100000|\| (\d+)/100000 ")
STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
#: The rank that fails in every scenario.
FAILING = "1"
RANK = re.compile(r"\[rank(\d+)\]")


class Case(NamedTuple):
    """A scenario and the answers that are right."""

    fault: str
    right: frozenset[str]
    ranks: int = 4
    restarts: int = 0


CASES = (
    Case("keyerror", frozenset({"user-code"})),
    Case("shape", frozenset({"user-code", "unrecognised"})),
    Case("segv", frozenset({"native-crash"})),
    Case("abort", frozenset({"native-crash"})),
    Case("kill", frozenset({"host-oom-killed", "rank-killed"})),
    Case("hang", frozenset({"nccl-timeout-watchdog"})),
    Case("disk", frozenset({"disk-full"})),
    Case("exit", frozenset({"unrecognised", "user-code"})),
    Case("restart", frozenset({"user-code"}), restarts=2),
    Case("retry", frozenset({"user-code"})),
    Case("ctrlc", frozenset({"interrupted-by-user"})),
    Case("hangup", frozenset({"terminal-closed"})),
)


def run(case: Case, folder: Path) -> str:
    """The log of a real run."""
    script = folder / "train.py"
    script.write_text(SCRIPT)
    argv = [
        sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={case.ranks}",
        f"--max-restarts={case.restarts}", "--monitor-interval=0.2", "--master-port=0",
        "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", str(script), case.fault, "20",
    ]  # fmt: skip
    env = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_SHOW_CPP_STACKTRACES": "0"}
    child = subprocess.Popen(
        argv,
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        out, _ = child.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        out, _ = child.communicate()
    return out.decode("utf-8", "replace").replace(str(folder), "/home/me/job")


def numbered(line: str, number: int) -> str:
    """A line of progress as that of another step."""
    found = STEP.search(line)
    if found is None:
        return line
    return STEP.sub(lambda m: m[0].replace(m[1] or m[2], str(number)), line)


def lengthened(text: str, size: int, ranks: int) -> Iterator[bytes]:
    """The run as if it had trained for hours on many ranks."""
    lines = text.split("\n")
    steps = [n for n, line in enumerate(lines) if STEP.search(line)]
    first, last = (steps[len(steps) // 3], steps[-1]) if steps else (0, 0)
    yield ("\n".join(lines[:first]) + "\n").encode()
    body = [line for line in lines[first : last + 1] if STEP.search(line) and "Error" not in line]
    written, number = 0, 50
    while body and written < size:
        rows = []
        for line in body * 200:
            number += 1
            clock = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(1_700_000_000 + number // 3))
            rows.append(STAMP.sub(clock, numbered(line, number)))
        block = ("\n".join(rows) + "\n").encode()
        written += len(block)
        yield block
    tail = []
    for line in lines[first:]:
        found = STEP.search(line)  # what follows goes on where the repeated steps end
        tail.append(numbered(line, number + int(found[1] or found[2])) if found else line)
        who = RANK.search(line)
        if who and who[1] != FAILING:
            tail += [RANK.sub(f"[rank{rank}]", line) for rank in range(4, ranks)]
    yield "\n".join(tail).encode()


def main() -> int:
    """Runs all scenarios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=float, default=200)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--engine", default="auto", choices=["auto", "words"])
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    if options.engine == "words":
        anchors.ENGINES.pop("hyperscan")
        anchors.HyperscanMatcher = anchors.WordMatcher  # type: ignore[misc,assignment]
    known = signatures_of(packs.load(builtin_only=True))
    diagnose([Source(name="x", data=b"warm up\n")], known)
    right = 0
    cases = [case for case in CASES if options.only in ("", case.fault)]
    for case in cases:
        with tempfile.TemporaryDirectory() as place:
            kept = options.keep / f"{case.fault}.log" if options.keep else None
            if kept and kept.exists():
                text = kept.read_text()
            else:
                text = run(case, Path(place))
                if kept:
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    kept.write_text(text)
            path = Path(place) / "long.log"
            with path.open("wb") as out:
                for block in lengthened(text, int(options.megabytes * 1e6), options.ranks):
                    out.write(block)
            size = path.stat().st_size / 1e6
            begun = time.process_time()
            found = diagnose([Source(name="long.log", path=path)], known)
            spent = time.process_time() - begun
        said = found.causes[0].condition if found.causes else found.outcome.value
        good = said in case.right
        right += good
        print(
            f"{'right' if good else 'WRONG'}  {case.fault:9} {said:22} {size:6.0f} MB "
            f"{size / spent:5.0f} MB/s  {found.decided_by}",
            flush=True,
        )
        for attempt in found.attempts:
            print(f"         attempt {attempt.number}: {attempt.ended_by}")
    print(f"{right}/{len(cases)} right")
    return 0 if right == len(cases) else 1


if __name__ == "__main__":
    raise SystemExit(main())
