"""Removes the locks that killed builds left in the cache of built ops.

## What it does
Removes each `lock` file that `jit-build-stale-lock` reports. Before it removes one, it checks again
whether a compiler works in that directory, and stops if one does.

## Undo
Restores the file.
"""

from __future__ import annotations

from dsdoctor.api import ExtensionCache, Findings, Plan, Remove, Step, fix

CONDITIONS = ("jit-build-stale-lock",)


@fix("remove-stale-lock")
def remove_stale_lock(cache: ExtensionCache, findings: Findings) -> Plan | None:
    """One step for each lock that the check reports as stale."""
    stale = {str(found.evidence.get("lock")) for found in findings.bad(*CONDITIONS)}
    steps: list[Step] = [
        Remove(
            remove=lock.path,
            unless_held=lock.path.rpartition("/")[0],
            why=f"no process builds `{lock.op}`, but jobs wait for this lock",
        )
        for lock in cache.locks
        if lock.path in stale and not lock.builders
    ]
    if not steps:
        return None
    return Plan(
        name="remove-stale-lock",
        title="remove the locks of killed builds",
        steps=tuple(steps),
        proves=CONDITIONS,
        undo="`dsdoctor fix --undo` restores the lock files",
    )
