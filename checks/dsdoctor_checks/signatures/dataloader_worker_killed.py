"""How `dataloader-worker-killed` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "dataloader-worker-killed"
TITLE = "a DataLoader worker was killed"
HINT = "lower `num_workers` and `prefetch_factor`, or give the job more host memory"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor="DataLoader worker",
        pattern=(
            r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\) (?:is|was) killed by signal: (?:Killed"
            r"|Terminated|Aborted)"
        ),
        examples=("RuntimeError: DataLoader worker (pid 71) is killed by signal: Killed.",),
        not_examples=("RuntimeError: DataLoader worker (pid 71) is killed by signal: Bus error.",),
        weight=70,
        masks=("host-oom-killed",),
    ),
    Signature(
        anchor="DataLoader worker",
        pattern=r"DataLoader worker \(pid\(?s?\)? [\d, ]+\) exited unexpectedly",
        examples=("RuntimeError: DataLoader worker (pid(s) 8, 9) exited unexpectedly",),
        not_examples=("DataLoader workers started",),
        weight=34,
    ),
)
