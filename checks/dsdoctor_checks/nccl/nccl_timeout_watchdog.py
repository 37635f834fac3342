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
        anchor="OpType=",
        pattern=r"[Ww]atchdog caught collective operation timeout: WorkNCCL\(SeqNum=(?P<number>\d+), OpType=(?P<operation>\w+)",
        examples=(
            "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=120, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800021 milliseconds before timing out.",
            "[E ProcessGroupNCCL.cpp:828] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=15, OpType=_ALLGATHER_BASE, Timeout(ms)=1800000) ran for 1800128 milliseconds",
        ),
        not_examples=("[Rank 0] WorkNCCL(SeqNum=120, OpType=ALLREDUCE) completed",),
        weight=47,
        message="A collective timed out, {operation} number {number}: a rank is slow, stuck or dead",
        compared=("operation", "number"),
    ),
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
