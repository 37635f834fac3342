"""A rank was killed from outside, and memory was not the reason.

## Why it matters
SIGKILL leaves no traceback. When the kernel reports no out-of-memory kill, somebody or something
else ended the process: an administrator, a scheduler's limit, a monitoring daemon, another job's
`pkill`.

## What to do
Look for limits of the scheduler (`sacct -j JOB --format=State,MaxRSS`, `kubectl describe pod`),
for daemons that end processes (`systemd-oomd`, `earlyoom`), and for `pkill python` in scripts.

## References
signal(7); systemd-oomd(8); `dsdoctor smoke` reads the control group's `oom_kill` counter and the
kernel's log before it names this condition.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("rank-killed", id="DSD1761", scope=Scope.JOB, since="0.1")

HINT = (
    "look for limits of the scheduler, for `systemd-oomd` or `earlyoom`, and for `pkill` in scripts"
)

SIGNATURES = (
    Signature(
        pattern=r"systemd-oomd killed \d+ process",
        examples=("/user.slice/session-3.scope: systemd-oomd killed 4 process(es) in this unit.",),
        not_examples=("systemd-oomd killed no process since boot",),
        level=Level.CERTAIN,
        masks=("host-oom-killed", "nccl-timeout-watchdog"),
    ),
)
