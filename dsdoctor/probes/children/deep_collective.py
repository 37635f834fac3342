"""Starts ranks on this host that all-reduce known numbers, and reports each rank's result.

Runs in the interpreter of the environment.

    python deep_collective.py BACKEND RANKS SECONDS

Stdlib and torch, Python 3.8 and later. Ranks meet through a file, so this takes no port.
Prints one record for each rank that ended: {"rank", "ok", "error"}.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any

COUNT = 4096


def say(**record: Any) -> None:
    os.write(1, ("\x1edsdoctor:" + json.dumps(record) + "\n").encode("utf-8", "replace"))


def rank(backend: str, number: int, size: int, seconds: float, meeting: str) -> None:
    import torch
    import torch.distributed as dist

    say(begun=number)
    device = "cpu"
    if backend == "nccl":
        torch.cuda.set_device(number)
        device = "cuda:%d" % number
    dist.init_process_group(
        backend,
        init_method="file://" + meeting,
        rank=number,
        world_size=size,
        timeout=dt.timedelta(seconds=seconds),
    )
    figures = torch.arange(COUNT, dtype=torch.float32, device=device) * (number + 1)
    dist.all_reduce(figures)
    factor = size * (size + 1) // 2
    wanted = torch.arange(COUNT, dtype=torch.float32) * factor
    same = bool(torch.equal(figures.cpu(), wanted))
    error = None
    if not same:
        error = "sums are wrong: %r instead of %r" % (
            float(figures.cpu()[1].item()),
            float(wanted[1].item()),
        )
    say(rank=number, ok=same, error=error)


def main() -> None:
    backend, size, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    as_rank = sys.argv[4:]
    if as_rank:
        number, meeting = int(as_rank[0]), as_rank[1]
        try:
            rank(backend, number, size, seconds, meeting)
        except Exception as error:
            words = (str(error).strip() or type(error).__name__).splitlines()[0]
            say(rank=number, ok=False, error=words[:300])
        sys.stdout.flush()
        # a process group that is torn down while a peer has died may hang or abort
        os._exit(0)
    mine = "dsdoctor-%s-%d-" % (os.environ.get("DSDOCTOR_RUN", "0"), os.getpid())
    folder = tempfile.mkdtemp(prefix=mine)  # the name allows removal if this process is killed
    meeting = os.path.join(folder, "store")
    begun = [
        subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), *sys.argv[1:4], str(number), meeting],
            env={**os.environ, "TMPDIR": folder},  # ranks end without removing their files
        )
        for number in range(size)
    ]
    limit = time.monotonic() + seconds
    try:
        while time.monotonic() < limit and any(child.poll() is None for child in begun):
            time.sleep(0.05)
        late = [number for number, child in enumerate(begun) if child.poll() is None]
        for number, child in enumerate(begun):
            if child.poll() not in (None, 0):
                say(died=number, status=child.returncode)
        say(done=True, late=late)
    finally:
        for child in begun:
            if child.poll() is None:
                child.kill()
            child.wait()
        shutil.rmtree(folder, ignore_errors=True)


main()
