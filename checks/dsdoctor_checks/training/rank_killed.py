"""A rank was killed with SIGKILL, but not because memory ran out.

## Why it matters
SIGKILL leaves no traceback. If the kernel reports no out-of-memory kill, something else killed the
process: an administrator, a limit of the scheduler, a monitoring daemon, or `pkill` of another job.

## What to do
Check the limits of the scheduler (`sacct -j JOB --format=State,MaxRSS`, `kubectl describe pod`),
daemons that kill processes (`systemd-oomd`, `earlyoom`), and scripts that run `pkill python`.

## References
signal(7); systemd-oomd(8); `dsdoctor smoke` reads the control group's `oom_kill` counter and the
kernel's log before it names this condition.
"""

from __future__ import annotations

from dsdoctor.api import (
    Condition,
    Level,
    Observation,
    Scope,
    Signature,
)

CONDITION = Condition(
    "rank-killed",
    id="DSD1761",
    scope=Scope.JOB,
    since="0.1",
    names=(Observation.KILLED,),
)

HINT = "check the limits of the scheduler, `systemd-oomd`, `earlyoom`, and scripts that run `pkill`"

SIGNATURES = (
    Signature(
        pattern=r"systemd-oomd killed \d+ process",
        source="systemd 247-257 src/core/unit.c",
        examples=("/user.slice/session-3.scope: systemd-oomd killed 4 process(es) in this unit.",),
        not_examples=("systemd-oomd killed no process since boot",),
        level=Level.CERTAIN,
        masks=("host-oom-killed", "nccl-timeout-watchdog"),
    ),
    # the kernel's counter of out-of-memory kills did not change
    Signature(
        pattern=r"return code = -9\b|exitcode\s*: -9\b|\bSignal 9 \(SIGKILL\)",
        examples=(
            "[ERROR] [launch.py:1:f] ['python'] exits with return code = -9",
            "  exitcode  : -9 (pid: 4711)",
            "  traceback : Signal 9 (SIGKILL) received by PID 4711",
        ),
        not_examples=("[ERROR] [launch.py:1:f] ['python'] exits with return code = -99",),
        source="memory.events of Linux's control groups, as `dsdoctor run` writes it down",
        masks=("host-oom-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
        requires=("memory.events: oom_kill +0 in ",),
        unless=("MemoryError", "std::bad_alloc", "oom_kill event", "OOMKilled", "OOM Killed"),
        echo=True,
    ),
)
