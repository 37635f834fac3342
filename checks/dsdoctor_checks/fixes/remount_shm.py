"""Says how to enlarge /dev/shm, which data loaders and NCCL share memory through.

## What it does
Prints the command; it reaches the system, and in a container it has to be said when the container
is started. dsdoctor runs neither.

## Undo
Remount with the former size, which the plan names.
"""

from __future__ import annotations

from dsdoctor.api import Findings, OsInfo, Plan, Reach, Resources, Tell, fix
from dsdoctor_checks._util import GIB

NAME = "remount-shm"


@fix(NAME, reach=Reach.SYSTEM)
def remount_shm(resources: Resources, system: OsInfo, findings: Findings) -> Plan | None:
    """Half of the memory, as distributions set it."""
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
        title=f"/dev/shm of {size} GiB instead of {former} MiB",
        steps=(Tell(tell=tell, why=findings.bad("shm-too-small")[0].message, reach=Reach.SYSTEM),),
        proves=("shm-too-small",),
        undo=f"`mount -o remount,size={former}M /dev/shm` brings the former size back",
        reach=Reach.SYSTEM,
    )
