"""Looks for NVSwitches and for the fabric manager that configures them."""

from __future__ import annotations

import re

from dsdoctor.api import FabricManager, NvidiaKernel, probe
from dsdoctor.host import TOOL_SECONDS, Host, HostError

#: Its name in /proc/PID/comm is truncated to 15 characters.
PROCESS = "nv-fabricmanage"
#: A kernel thread: if it is not visible, the processes of the machine are not visible.
KERNEL_THREAD = "kthreadd"


def parse_version(text: str) -> str | None:
    r"""The version that `nv-fabricmanager --version` prints.

    >>> parse_version("\n\n\tFabric Manager version is : 535.161.08\n")
    '535.161.08'
    """
    found = re.search(r"Fabric Manager version is\s*:?\s*(\d+(?:\.\d+)+)", text)
    return found[1] if found else None


def _running(host: Host) -> bool | None:
    try:
        names = {str(row.get("name", "")) for row in host.query("processes")}
    except HostError:
        return None
    if any(name.startswith(PROCESS) for name in names):
        return True
    return False if KERNEL_THREAD in names else None


def _version(host: Host) -> str | None:
    try:
        program = host.which("nv-fabricmanager")
        if program is None:
            return None
        done = host.run([program, "--version"], timeout=TOOL_SECONDS)
    except HostError:
        return None
    return parse_version(done.text)


@probe
def fabric_manager(host: Host, kernel: NvidiaKernel) -> FabricManager:
    """Looks for the service only if there are switches."""
    named = re.compile(r"nvidia-nvswitch\d+")
    switches = sum(named.fullmatch(name) is not None for name in kernel.device_nodes)
    if not switches:
        return FabricManager()
    return FabricManager(switches=switches, running=_running(host), version=_version(host))
