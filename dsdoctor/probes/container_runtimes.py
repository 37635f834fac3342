"""Asks Docker for its runtimes, if the job's container asks for one."""

from __future__ import annotations

import json

from dsdoctor.api import ContainerRuntimes, RunNeeds, Why, probe
from dsdoctor.host import TOOL_SECONDS, Host, HostError
from dsdoctor.probes.command_result import trouble


@probe
def container_runtimes(host: Host, run: RunNeeds) -> ContainerRuntimes:
    """The names in `docker info`, which asks the daemon."""
    if not run.container_runtime:
        raise HostError(Why.NOT_ASKED, "the command starts no container with a runtime of its own")
    path = host.which("docker")
    if path is None:
        raise HostError(Why.ABSENT, "there is no `docker` on PATH")
    result = host.run([path, "info", "--format", "{{json .Runtimes}}"], timeout=TOOL_SECONDS)
    if (wrong := trouble(result, TOOL_SECONDS)) is not None:
        raise HostError(Why.DENIED, f"Docker did not list its runtimes: {wrong}")
    try:
        names = json.loads(result.text)
    except ValueError:
        names = None
    if not isinstance(names, dict):
        raise HostError(Why.BROKEN, "the runtimes of `docker info` could not be read")
    return ContainerRuntimes(names=tuple(sorted(names)))
