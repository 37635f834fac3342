"""A collective timed out: a rank is slow, stuck or dead.

## Why it matters
The watchdog ends a rank that waited too long in a collective. The rank that reports is the
victim: the cause is on the one that did not come.

## What to do
Find the rank that is missing in the collective (py-spy dump), and raise `ddp_timeout` if it is
only slow.

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition("nccl-timeout-watchdog", id="DSD853", scope=Scope.JOB, since="0.1")

HINT = "find the rank that is missing in the collective (py-spy dump), and raise `ddp_timeout` if it is only slow"

SIGNATURES = (
    Signature(
        anchor=(
            "Watchdog caught collective",
            "ran for",
            "Timeout at NCCL work",
            "Timed out waiting",
            "monitoredBarrier",
            "wait timeout after",
            "heartbeat",
            "Socket Timeout",
            "store",
            "Timeout",
        ),
        pattern=(
            r"[Ww]atchdog caught collective operation timeout|Timeout at NCCL work"
            r"|Timed out waiting \d+ms for (?:recv|send)|failed to pass monitoredBarrier"
            r"|monitoredBarrier|wait timeout after \d+|[Hh]eartbeat monitor timed out"
            r"|Socket Timeout|(?:Broadcast|store).{0,60}(?:Timeout|timed out)"
        ),
        examples=(
            "[E ProcessGroupNCCL.cpp:475] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2)",
            "RuntimeError: Socket Timeout",
        ),
        not_examples=("Timeout=600",),
        weight=46,
    ),
)
