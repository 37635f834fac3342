"""The run was interrupted from the keyboard (Ctrl-C).

## Why it matters
Ctrl-C sends SIGINT to every process of the terminal. Each rank prints a `KeyboardInterrupt` at the
line that it was executing; that line is not a fault. If the run had hung, the last frames show what it
was waiting for.

## What to do
Nothing is wrong if the interruption was intended. If the run had hung, start it again under
`dsdoctor run`, or see where each rank waits with `py-spy dump --pid PID`.

## References
- https://docs.python.org/3/library/exceptions.html#KeyboardInterrupt
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("interrupted-by-user", id="DSD1262", scope=Scope.JOB, since="0.1")

HINT = "nothing to fix if this was intended; if the run had hung, start it again and see where each rank waits with `py-spy dump --pid PID`"

SIGNATURES = (
    Signature(
        pattern=r"^KeyboardInterrupt\s*$|^\^CTraceback|got signal: 2\b|Received 2 death signal|Signals\.SIGINT death signal",
        source="CPython 3.8-3.14; torch 1.9-2.13 distributed/elastic",
        examples=(
            "KeyboardInterrupt",
            "^CTraceback (most recent call last):",
            "SignalException: Process 4711 got signal: 2",
            "Received 2 death signal, shutting down workers",
            "Received Signals.SIGINT death signal, shutting down workers",
        ),
        not_examples=("except KeyboardInterrupt: pass", "the process got signal: 28"),
        level=Level.WEAK,
        masks=("rank-killed",),
    ),
    Signature(
        # trainers that end in order, so that Python prints no traceback
        pattern=r"Detected KeyboardInterrupt, attempting graceful shutdown|Keyboard interruption\. Exiting from early training",
        source="lightning 1.0-2.5 pytorch/trainer/call.py; cvnets and corenet engine/training_engine.py",
        examples=(
            "trainer/call.py:54: Detected KeyboardInterrupt, attempting graceful shutdown...",
            "LOGS    - Keyboard interruption. Exiting from early training",
        ),
        masks=("rank-killed",),
    ),
    Signature(
        pattern=r"Main process received SIGINT, exiting",
        source="deepspeed 0.9-0.19 launcher/launch.py",
        examples=(
            "[2025-01-02 03:04:05,678] [INFO] [launch.py:328:sigkill_handler] Main process received SIGINT, exiting",
        ),
        level=Level.LIKELY,
        masks=("rank-killed",),
    ),
)
