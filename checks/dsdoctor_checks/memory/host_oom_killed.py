"""The kernel killed the process because host memory ran out.

## Why it matters
Offloaded states and DataLoader workers use host memory. When it runs out, the kernel kills the
largest process with SIGKILL. There is no traceback, only `return code = -9`.

## What to do
Request more host memory for the job, offload less, or start fewer ranks and workers.

## References
Detected from logs only.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Observation, Scope

from . import _host_oom_killed_signatures

CONDITION = Condition(
    "host-oom-killed",
    id="DSD1452",
    scope=Scope.JOB,
    since="0.1",
    names=(Observation.KILLED_FOR_MEMORY,),
)

HINT = "request more host memory for the job, offload less, or start fewer ranks and workers"

SIGNATURES = _host_oom_killed_signatures.SIGNATURES
