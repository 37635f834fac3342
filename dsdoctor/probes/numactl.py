"""Asks `numactl` whether it works here, if the deepspeed launcher of the command calls it."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version

from dsdoctor.api import (
    DeepSpeedInstall,
    DeepSpeedLive,
    Environment,
    LaunchCommand,
    Missing,
    Numactl,
    Why,
    probe,
)
from dsdoctor.host import TOOL_SECONDS, Host, HostError, exists
from dsdoctor.hostfile import DEFAULT_HOSTFILE
from dsdoctor.probes.command_result import trouble

#: Options of the deepspeed launcher; without the first, the second has no effect (0.8 to 0.19.8).
BINDS = "bind_cores_to_rank"
#: numactl 2.0.9 to 2.0.19 numactl.c `hardware` and `main`: a kernel without NUMA, as of WSL 2.
NO_NUMA = ("No NUMA available on this system", "No NUMA support available on this system")
#: From this release on, `get_numa_cores` (utils/numa.py) takes a failure of `numactl` for one node.
CATCHES = Version("0.16.0")


@probe
def numactl(
    host: Host,
    command: LaunchCommand,
    deepspeed: DeepSpeedInstall | Missing,
    live: DeepSpeedLive | Missing,
    env: Environment | Missing,
) -> Numactl:
    """Runs `numactl --hardware`, as the launcher does."""
    if command.launcher != "deepspeed":
        raise HostError(Why.NOT_ASKED, "the command does not start the deepspeed launcher")
    binds = BINDS in command.options
    if not binds and not (
        _counts_nodes(deepspeed, live)
        and not (isinstance(env, Environment) and env.get("LOCAL_SIZE"))
        and "hostfile" not in command.options
        and not exists(host, DEFAULT_HOSTFILE)
    ):
        raise HostError(Why.NOT_ASKED, "the launcher of the command does not call `numactl`")
    path = host.which("numactl")
    if path is None:
        return Numactl(binds=binds)
    result = host.run([path, "--hardware"], timeout=TOOL_SECONDS)
    text = result.text + result.stderr.decode("utf-8", "replace")
    said = next((words for words in NO_NUMA if words in text), "")
    return Numactl(path=path, error=said or trouble(result, TOOL_SECONDS) or "", binds=binds)


def _counts_nodes(deepspeed: DeepSpeedInstall | Missing, live: DeepSpeedLive | Missing) -> bool:
    """Whether the launcher counts NUMA nodes as devices, and stops without `numactl`."""
    if isinstance(deepspeed, Missing) or isinstance(live, Missing) or live.accelerator != "cpu":
        return False
    try:
        return Version(deepspeed.version or "") < CATCHES
    except InvalidVersion:
        return False
