"""Numbers of nodes and addresses in the environment, as launchers without one of their own read them."""

from __future__ import annotations

import re

from dsdoctor.api import Environment, LaunchCommand, Missing, RunNeeds
from dsdoctor_checks._util import variable

#: Options of torchrun that say where its nodes meet.
_MEETING = ("master_addr", "rdzv_endpoint", "rdzv_conf")


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


def meets_nowhere(command: LaunchCommand, env: Environment | Missing) -> bool:
    """Whether nothing tells torchrun where its nodes meet."""
    if "torchrun" not in (command.launcher, command.inner):
        return False
    if (command.num_nodes or 1) == 1 or command.master_addr:
        return False
    names = (f"PET_{name.upper()}" for name in _MEETING)
    given = any(variable(env, name) or command.env.get(name) for name in names)
    return not given and not any(command.options.get(name) for name in _MEETING)


def accelerate_meets_nowhere(command: LaunchCommand) -> bool:
    """Whether nothing tells the nodes of `accelerate launch` the address of node 0.

    Its own launchers then stop, or pass on the word `None` (accelerate 0.20 to 1.15 utils/launch.py,
    read 2026-11-30). That of DeepSpeed, and a rendezvous of torchrun's, find it themselves.
    """
    options = command.options
    kind = options.get("distributed_type", "").upper()
    elsewhere = {"main_process_ip", "use_deepspeed", "tpu", "rdzv_backend", "config_file"}
    return (
        "accelerate" in (command.launcher, command.inner)
        and command.master_addr is None
        and not elsewhere & options.keys() - ({"config_file"} if kind else set())
        and kind in ("", "FSDP", "MULTI_CPU", "MULTI_GPU", "NO")
    )
