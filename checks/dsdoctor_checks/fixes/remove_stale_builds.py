"""Removes ops from the build cache that were built for a torch that was removed or replaced.

## What it does
Moves the directory of each such op aside. torch builds the op again at its next use. Directories
that a running process uses, or that contain a lock for which torch waits, are not touched.

## Undo
Restores the directories.
"""

from __future__ import annotations

from dsdoctor.api import Impossible, Plan, Remove, StaleBuilds, fix

NAME = "remove-stale-builds"


@fix(NAME)
def remove_stale_builds(builds: StaleBuilds) -> Plan | Impossible | None:
    """One step for each directory."""
    if not builds.folders:
        if builds.held:
            return Impossible(why=f"`{builds.held[0]}` is stale, but a build uses it; run this again "
                              "when the build has ended, after `dsdoctor fix remove-stale-lock`")  # fmt: skip
        return None
    return Plan(
        name=NAME,
        title="remove ops that were built for another torch",
        steps=tuple(
            Remove(remove=folder, unless_held=folder, why=why)
            for folder, why in sorted(builds.folders.items())
        ),
        undo="`dsdoctor fix --undo` restores the directories",
    )
