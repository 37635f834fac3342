"""How `nccl-timeout-watchdog` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "nccl-timeout-watchdog"
TITLE = "a collective timed out: a rank is slow, stuck or dead"
HINT = "find the rank that is missing in the collective (py-spy dump), and raise `ddp_timeout` if it is only slow"
FIXES: tuple[str, ...] = ()

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
