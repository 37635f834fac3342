"""The launcher died while its ranks still ran.

## Why it matters
Ranks whose launcher is gone run on as orphans: they hold GPUs and the master port, and the next
job finds both taken. `deepspeed` even ends with status 0 when its inner launcher is killed by a
signal, so that a script believes the job has succeeded.

## What to do
End the orphans (`nvidia-smi` and `ps -ef` name them). Start long jobs under a scheduler, `tmux`
or `nohup`, so that a closed terminal does not take the launcher away.

## References
deepspeed/launcher/runner.py (`if result.returncode > 0: sys.exit`): a negative return code, which
is a signal, is passed over
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("launcher-killed", id="DSD1260", scope=Scope.JOB, since="0.1")

HINT = "end the ranks that are left, and start the job under a scheduler, `tmux` or `nohup`"

SIGNATURES = (
    Signature(
        pattern=r"the launcher ended \((?:exit status|signal) -?\w+\) while rank [\d, ]+ still ran",
        examples=(
            "FAIL  the launcher ended (signal 9) while rank 0, 1 still ran",
            "FAIL  the launcher ended (exit status 137) while rank 3 still ran",
        ),
        not_examples=("the launcher ended (exit status 0)",),
        level=Level.CERTAIN,
        masks=("host-oom-killed", "rank-killed"),
    ),
)
