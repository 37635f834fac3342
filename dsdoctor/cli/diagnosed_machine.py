"""Compares the causes of a diagnosis with a machine: `diagnose --here` and `--snapshot`."""

from __future__ import annotations

import msgspec

from dsdoctor import host_actions
from dsdoctor.cli import common
from dsdoctor.job.request import run_needs
from dsdoctor.judge import judge
from dsdoctor.logs import context
from dsdoctor.model.diagnosis import Diagnosis
from dsdoctor.model.facts.machine import OsInfo
from dsdoctor.packs.registry import Registry


def compared(
    diagnosis: Diagnosis,
    registry: Registry,
    snapshot_file: str | None,
    python: str | None,
    config: str | None,
) -> Diagnosis:
    """The diagnosis, with what the checks of its causes find on a machine.

    Raises:
        UsageError: the snapshot or a setting cannot be read.
    """
    found = common.load_settings(registry)
    policy = common.policy(found, ())
    units = context.units_for(diagnosis, registry)
    if snapshot_file is not None:
        snapshot = common.load_snapshot(snapshot_file)
    elif not units:
        return context.combine(diagnosis, [], registry, "this machine")
    else:
        needs = run_needs(config=config)
        snapshot = common.live_snapshot(needs, python, registry, units, None)
    judged = judge(snapshot, units, registry, policy)
    where = f"`{judged.host}`" if judged.host else "this machine"
    if snapshot_file is not None:
        where += f" as of {snapshot.created or 'an unknown time'}"
    combined = context.combine(diagnosis, judged.findings, registry, where)
    if not host_actions.is_container(snapshot.get(OsInfo)):
        return combined
    causes = [
        msgspec.structs.replace(c, hint=host_actions.for_container(c.hint)) for c in combined.causes
    ]
    return msgspec.structs.replace(combined, causes=tuple(causes))
