"""An import that ended with SIGKILL: the package is not at fault."""

from __future__ import annotations

from dsdoctor.api import Finding, ImportOutcome, Missing, Resources, fail, skip, without_fix

#: A program does not send itself this signal by mistake. The kernel sends it when memory runs out or
#: a cgroup reaches its limit; administrators send it too.
SIGKILL = 9
#: With less free than this `host-memory-low` reports it (its default for one rank).
NEEDED = 2 << 30


def killed(outcome: ImportOutcome) -> bool:
    """Whether an import was ended by SIGKILL."""
    return outcome.signal == SIGKILL


def shortage(outcome: ImportOutcome, module: str, resources: Resources | Missing) -> Finding:
    """The finding for it; skipped if memory is short, which `host-memory-low` reports."""
    free = None if isinstance(resources, Missing) else resources.memory_available_bytes
    if free is not None and free < NEEDED:
        return skip(
            f"the kernel killed `import {module}` because memory ran out (`host-memory-low`)",
            signal=outcome.signal,
            available_bytes=free,
        )
    finding = fail(
        f"`import {module}` was killed by SIGKILL, which the kernel sends when memory runs out",
        effect="every rank can be killed in the same way",
        hint="look for `Out of memory` in `dmesg`, raise the memory limit of the job, or stop other"
        " programs, then run `dsdoctor check` again",
        signal=outcome.signal,
        died=outcome.message,
        seconds=outcome.seconds,
        available_bytes=free,
    )
    return without_fix(finding)
