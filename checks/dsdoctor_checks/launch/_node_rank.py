"""Numbers of nodes and addresses in the environment, as launchers without one of their own read them."""

from __future__ import annotations

import re

from dsdoctor.api import Environment, LaunchCommand, Missing, RunNeeds
from dsdoctor_checks._util import variable


def own_address(host: str) -> bool:
    """Whether an address is that of whichever node uses it."""
    return host.lower() == "localhost" or host.startswith("127.") or host.strip("[]") == "::1"


def node_rank_left(
    command: LaunchCommand | Missing, env: Environment | Missing, run: RunNeeds
) -> tuple[str, str] | None:
    """A number of this node that Lightning reads, though nothing else says that there are several.

    Lightning 1.2 to 2.6 plugins/environments/lightning.py: `NODE_RANK`, then `GROUP_RANK`; without
    `MASTER_ADDR` node 0 is 127.0.0.1.
    """
    alone = isinstance(command, LaunchCommand) and command.launcher == "python"
    if not alone or run.framework != "lightning" or variable(env, "SLURM_JOB_ID"):
        return None
    host = variable(env, "MASTER_ADDR")
    if host and not own_address(host):
        return None
    name = "NODE_RANK" if variable(env, "NODE_RANK") is not None else "GROUP_RANK"
    value = variable(env, name) or ""
    return (name, value) if re.fullmatch(r"[1-9]\d{0,5}", value) else None
