"""Asks `numactl` whether it can bind ranks here, if the command lets the launcher bind them."""

from __future__ import annotations

from dsdoctor.api import LaunchCommand, Numactl, Why, probe
from dsdoctor.host import TOOL_SECONDS, Host, HostError
from dsdoctor.probes.command_result import trouble

#: Options of the deepspeed launcher; without the first, the second has no effect (0.8 to 0.19.8).
BINDS = "bind_cores_to_rank"
#: numactl 2.0.9 to 2.0.19 numactl.c `hardware` and `main`: a kernel without NUMA, as of WSL 2.
NO_NUMA = ("No NUMA available on this system", "No NUMA support available on this system")


@probe
def numactl(host: Host, command: LaunchCommand) -> Numactl:
    """Runs `numactl --hardware`, as the launcher does."""
    if command.launcher != "deepspeed" or BINDS not in command.options:
        raise HostError(Why.NOT_ASKED, "the command binds no ranks with `numactl`")
    path = host.which("numactl")
    if path is None:
        return Numactl()
    result = host.run([path, "--hardware"], timeout=TOOL_SECONDS)
    text = result.text + result.stderr.decode("utf-8", "replace")
    said = next((words for words in NO_NUMA if words in text), "")
    return Numactl(path=path, error=said or trouble(result, TOOL_SECONDS) or "")
