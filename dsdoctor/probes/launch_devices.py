"""Which GPUs of this host the ranks of a command use, as far as its launcher decides that."""

from __future__ import annotations

from typing import NamedTuple

from dsdoctor.model.facts.launch import LaunchCommand

#: What the deepspeed launcher calls this host without a hostfile.
_LOCAL = "localhost"
#: More GPUs than any host has.
_MOST = 64


class Devices(NamedTuple):
    """The choice of a command.

    Attributes:
        visible: `CUDA_VISIBLE_DEVICES` that the ranks get; None = that of the environment.
        first: they use only so many of the visible GPUs, the first ones; None = not stated.
    """

    visible: str | None = None
    first: int | None = None


def devices_of(command: LaunchCommand, hostname: str) -> Devices:
    """The GPUs that the ranks on this host use.

    The deepspeed launcher sets `CUDA_VISIBLE_DEVICES` in each rank and ignores that of its own
    environment if the command selects GPUs (0.3-0.19 launcher/runner.py and launch.py), and
    accelerate sets it to its `gpu_ids` (1.15 utils/launch.py). One process of torchrun or
    accelerate may use several GPUs, so only their number of ranks says how many are used.

    >>> from dsdoctor.probes.command_line import parse_command
    >>> devices_of(parse_command(["deepspeed", "--include", "localhost:2,3", "a.py"]), "node")
    Devices(visible='2,3', first=None)
    >>> devices_of(parse_command(["torchrun", "--nproc_per_node=2", "a.py"]), "node")
    Devices(visible=None, first=2)
    """
    kind = command.inner or command.launcher
    visible = command.env.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and "$" in visible:  # only a shell can expand it
        visible = None
    if kind == "deepspeed":
        return _of_deepspeed(command, hostname) or Devices(visible)
    if kind == "accelerate" and command.options.get("gpu_ids") not in (None, "", "all"):
        visible = command.options["gpu_ids"]
    several = kind in ("torchrun", "accelerate") and (command.num_gpus or 0) > 1
    return Devices(visible, command.num_gpus if several else None)


def _of_deepspeed(command: LaunchCommand, hostname: str) -> Devices | None:
    """What its options select; None if they select nothing that is known."""
    if command.include:
        hosts = command.filter_slots(command.include) or {}
        slots = hosts.get(_LOCAL) or hosts.get(hostname)
        return Devices(",".join(map(str, slots))) if slots else None
    if command.exclude or not 0 < (command.num_gpus or 0) <= _MOST:
        return None
    return Devices(",".join(map(str, range(command.num_gpus or 0))))
