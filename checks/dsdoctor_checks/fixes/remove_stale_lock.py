"""Removes the locks that killed builds left in the cache of built ops.

## What it does
Removes each `lock` file that `jit-build-stale-lock` reports. Before it removes one, it checks again
whether a compiler works in that directory, and stops if one does. torch 2.14 and newer do not wait for
such files, so nothing is removed there.

## Undo
Restores the file.
"""

from __future__ import annotations

from dsdoctor.api import (
    ExtensionCache,
    Findings,
    Impossible,
    Missing,
    Plan,
    Remove,
    Step,
    TorchBuild,
    fix,
)

CONDITIONS = ("jit-build-stale-lock",)


@fix("remove-stale-lock")
def remove_stale_lock(
    cache: ExtensionCache, findings: Findings, torch: TorchBuild | Missing
) -> Plan | Impossible | None:
    """One step for each lock that the check reports as stale.

    A recent lock may belong to a build on another host that shares the cache. Whoever asks for the
    fix nevertheless, because a job is waiting, learns how long it is left alone.
    """
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
        return _left_alone(cache, torch)
    return Plan(
        name="remove-stale-lock",
        title="remove the locks of killed builds",
        steps=tuple(steps),
        proves=CONDITIONS,
        undo="`dsdoctor fix --undo` restores the lock files",
    )


def _left_alone(cache: ExtensionCache, torch: TorchBuild | Missing) -> Impossible | None:
    """Why the first lock without a known build is not removed; None if there is none."""
    if cache.locks and isinstance(torch, TorchBuild) and not torch.waits_for_lock_files:
        return Impossible(
            why=f"torch {torch.version} does not wait for files named `lock`: the lock of a build "
            "ends with its process"
        )
    for lock in cache.locks:
        if not lock.builders:
            return Impossible(
                why=f"`{lock.path}` is {int(lock.age_seconds // 60)} min old, so a build on another "
                "host may still hold it; wait until `dsdoctor check` reports it, or, if nothing "
                f"builds `{lock.op}`, remove it yourself"
            )
    return None
