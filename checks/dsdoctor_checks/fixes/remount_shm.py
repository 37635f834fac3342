"""Prints how to enlarge /dev/shm, which DataLoader workers and NCCL use.

## What it does
Prints the command or the setting. It needs root, and the size of a container's /dev/shm is set when
the container starts, so dsdoctor does not run it.

## Undo
Remount with the previous size, which the plan shows.
"""

from __future__ import annotations

from dsdoctor.api import Findings, OsInfo, Plan, Reach, Resources, Tell, fix
from dsdoctor_checks._util import GIB

NAME = "remount-shm"


@fix(NAME, reach=Reach.SYSTEM)
def remount_shm(resources: Resources, system: OsInfo, findings: Findings) -> Plan | None:
    """Sets the size to half of the memory, the default of most distributions."""
    if not findings.bad("shm-too-small") or resources.shm_total_bytes is None:
        return None
    size = max(1, resources.memory_usable_bytes // 2 // GIB)
    former = max(1, resources.shm_total_bytes >> 20)
    if system.container == "kubernetes":
        tell = (
            "in the pod's spec: volumes: [{name: shm, emptyDir: {medium: Memory, "
            f"sizeLimit: {size}Gi}}}}], mounted at /dev/shm"
        )
    elif system.container:
        tell = f"start the container with --shm-size={size}g (or --ipc=host)"
    else:
        tell = f"mount -o remount,size={size}G /dev/shm"
        tell = tell if system.is_root else f"sudo {tell}"
    return Plan(
        name=NAME,
        title=f"enlarge /dev/shm from {former} MiB to {size} GiB",
        steps=(Tell(tell=tell, why=findings.bad("shm-too-small")[0].message, reach=Reach.SYSTEM),),
        proves=("shm-too-small",),
        undo=f"`mount -o remount,size={former}M /dev/shm` restores the previous size",
        reach=Reach.SYSTEM,
    )
