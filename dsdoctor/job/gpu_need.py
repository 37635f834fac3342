"""What in a command, or in its script, surely needs a GPU on this machine."""

from __future__ import annotations

from dsdoctor.model.facts.launch import LaunchCommand
from dsdoctor.scripts.process_group import ProcessGroup

#: Launchers that start the ranks on the machine where they are called.
_HERE = frozenset({"python", "torchrun"})


def gpu_needed_by(command: LaunchCommand, group: ProcessGroup | None) -> str:
    """What needs one, in words; "" = nothing certainly does.

    >>> gpu_needed_by(LaunchCommand(launcher="torchrun", options={"nproc_per_node": "gpu"}), None)
    '`--nproc_per_node gpu`'
    """
    if command.launcher not in _HERE:
        return ""
    if command.launcher == "torchrun" and command.options.get("nproc_per_node") == "gpu":
        return "`--nproc_per_node gpu`"
    if group is not None and group.backend == "nccl" and group.only_torch:
        return f"NCCL in line {group.line} of `{command.script}`"
    return ""
