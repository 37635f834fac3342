"""A DataLoader worker was killed.

## Why it matters
DataLoader workers keep copies of the data. When host memory runs out, the kernel kills a worker, and
the rank that waits for it stops.

## What to do
Lower `num_workers` and `prefetch_factor`, or request more host memory for the job.

## References
Detected from logs only.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature, TracebackRule

CONDITION = Condition("dataloader-worker-killed", id="DSD1450", scope=Scope.JOB, since="0.1")

TRACEBACK_RULES = (
    # the socket of the worker that sends a tensor's memory is gone, before torch has noticed its
    # end; what a worker itself raises does not pass here
    TracebackRule(
        file="torch/utils/data/dataloader.py",
        function="_try_get_data",
        kinds=("ConnectionResetError", "ConnectionRefusedError", "FileNotFoundError", "EOFError"),
        source="torch 1.2-2.15 utils/data/dataloader.py, multiprocessing/reductions.py; provoked with 2.13.0",
        level=Level.STRONG,
        example='Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 1291, in _try_get_data\nConnectionResetError: [Errno 104] Connection reset by peer',
    ),
)

HINT = "lower `num_workers` and `prefetch_factor`, or request more host memory for the job"

SIGNATURES = (
    Signature(
        # Terminated is a job that somebody ended: out of memory, the kernel kills
        pattern=r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\) (?:is|was) killed by signal: (?:Killed|Aborted)",
        source="torch 1.0-2.13 csrc/DataLoader.cpp, utils/data/dataloader.py",
        examples=(
            "RuntimeError: DataLoader worker (pid 71) is killed by signal: Killed.",
            "RuntimeError: DataLoader worker (pid(s) 12, 13) was killed by signal: Killed. Details are lost due to multiprocessing.",
            "DataLoader worker (pid 7) is killed by signal: Aborted",
        ),
        not_examples=("worker (pid 71) is killed by signal: Killed.",),
        level=Level.CERTAIN,
        masks=("host-oom-killed",),
    ),
    Signature(
        pattern=r"DataLoader worker \(pid [\d, ]+\) exited unexpectedly with exit code (?P<code>\d{1,3})\b",
        source="torch 1.0-2.13 csrc/DataLoader.cpp: the worker ended by itself",
        message="A DataLoader worker ended with exit code {code}",
        hint="look above for what the worker itself printed; if there is nothing, run once with `num_workers=0`, so that the exception appears in the process of the rank",
        examples=(
            "RuntimeError: DataLoader worker (pid 771) exited unexpectedly with exit code 1. Details are lost due to multiprocessing. Rerunning with num_workers=0 may give better error trace.",
        ),
        not_examples=("DataLoader worker (pid 7) exited unexpectedly with exit code unknown",),
        level=Level.HINT,
    ),
    Signature(
        pattern=r"DataLoader worker \(pid\(?s?\)? [\d, ]+\) exited unexpectedly(?! with exit code \d)",
        source="torch 2.13.0 utils/data/dataloader.py, libtorch_python.so",
        examples=("RuntimeError: DataLoader worker (pid(s) 8, 9) exited unexpectedly",),
        not_examples=(
            "RuntimeError: DataLoader worker (pid 318) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.",
        ),
        level=Level.HINT,
    ),
)
