"""Removes built ops from the cache whose torch is gone or was replaced.

## What it does
Moves the folder of each such op aside; torch builds it anew at the next use. Folders in which a
live process works, or that hold a lock, are left alone.

## Undo
Puts the folders back.
"""

from __future__ import annotations

from dsdoctor.api import Impossible, Plan, Remove, StaleBuilds, fix

NAME = "remove-stale-builds"


@fix(NAME)
def remove_stale_builds(builds: StaleBuilds) -> Plan | Impossible | None:
    """One step for each folder."""
    if not builds.folders:
        if builds.held:
            return Impossible(why=f"`{builds.held[0]}` is stale, but a build holds it; run this again "
                              "when it has ended, after `dsdoctor fix remove-stale-lock`")  # fmt: skip
        return None
    return Plan(
        name=NAME,
        title="remove built ops of another torch",
        steps=tuple(
            Remove(remove=folder, unless_held=folder, why=why)
            for folder, why in sorted(builds.folders.items())
        ),
        undo="`dsdoctor fix --undo` puts the folders back",
    )
