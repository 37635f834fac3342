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
            "ocket timeout",
            "Wait timeout",
            "store->get",
            "watchdog got stuck",
            "barrier timed out",
            "Application timeout caused pair closure",
            "NCCL_BLOCKING_WAIT",
            "NCCL operations have failed or timed out",
            "Heartbeat monitor timed out",
            "Barrier timed out after",
        ),
        pattern=(
            r"[Ww]atchdog caught collective operation timeout|Timeout at NCCL work"
            r"|Timed out waiting \d+ms for (?:recv|send)|failed to pass monitoredBarrier"
            r"|in monitoredBarrier|[Ww]ait timeout after \d+|[Hh]eartbeat monitor timed out"
            r"|[Ss]ocket [Tt]imeout\b|store->get\(.{0,80}(?:[Tt]imeout|timed out)"
            r"|watchdog got stuck for \d+|Application timeout caused pair closure"
            r"|NCCL operations have failed or timed out|ran for \d+ milliseconds before timing out"
            r"|[Bb]arrier timed out after"
        ),
        examples=(
            "[E ProcessGroupNCCL.cpp:475] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2)",
            "RuntimeError: Socket Timeout",
            "RuntimeError: NCCL communicator was aborted on rank 1. Original reason: [Rank 1] Watchdog caught collective operation timeout",
            "[F ProcessGroupNCCL.cpp:1250] [Rank 0] ProcessGroupNCCL's watchdog got stuck for 600 seconds without making progress",
            "RuntimeError: [unbound_buffer.cc:84] Timed out waiting 1800000ms for recv operation to complete",
        ),
        not_examples=(
            "Timeout=600",
            "[INFO] store: TCPStore, Timeout(ms)=1800000",
            "[rank0]: Heartbeat ok, socket timeout_s=30",
            "NCCL INFO NCCL_BLOCKING_WAIT set by environment to 1",
        ),
        weight=46,
    ),
    Signature(
        anchor=("watchdog", "signal dumping", "dump signal"),
        pattern="detected by watchdog at work|on this rank to signal dumping|Received a dump signal",
        examples=(
            "[rank1]:[E1026 04:01:29.1 ProcessGroupNCCL.cpp:2241] [PG ID 0 Rank 1] failure detected by watchdog at work sequence id: 9",
            "[E ProcessGroupNCCL.cpp:1664] [PG 1 Rank 0] Exception (either an error or timeout) detected by watchdog at work: 12",
            "[E ProcessGroupNCCL.cpp:1682] [PG ID 0 Rank 3] Received a dump signal due to a collective timeout from rank 1",
        ),
        not_examples=("[PG 0 Rank 0] ProcessGroupNCCL watchdog thread started",),
        weight=26,
    ),
)
