"""The fabric manager, looked for only where there are switches."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import FabricManager, NvidiaKernel
from dsdoctor.probes.fabric import fabric_manager
from dsdoctor.testing import FakeHost

SWITCHES = NvidiaKernel(
    device_nodes=("nvidia0", "nvidia-nvswitch0", "nvidia-nvswitch1", "nvidia-nvswitchctl")
)
KERNEL = {"pid": 2, "name": "kthreadd"}
MANAGER = {"pid": 900, "name": "nv-fabricmanager"}
CUT = {"pid": 900, "name": "nv-fabricmanage"}


def host(*processes: dict[str, Any], program: bool = True) -> FakeHost:
    return FakeHost(
        env={"PATH": "/usr/bin"},
        files={"/usr/bin/nv-fabricmanager": ""} if program else {},
        commands={"/usr/bin/nv-fabricmanager": "\n\tFabric Manager version is : 535.161.08\n"},
        queries={"processes": list(processes)},
    )


@pytest.mark.parametrize(
    ("processes", "running"),
    [
        ((KERNEL, MANAGER), True),
        ((KERNEL, CUT), True),
        ((MANAGER,), True),
        ((KERNEL,), False),
        (({"pid": 1, "name": "bash"},), None),  # a container: the machine's are not seen
    ],
)
def test_its_process(processes: tuple[dict[str, Any], ...], running: bool | None) -> None:
    found = fabric_manager.function(host(*processes), SWITCHES)
    assert found == FabricManager(switches=2, running=running, version="535.161.08")


def test_not_installed() -> None:
    found = fabric_manager.function(host(KERNEL, program=False), SWITCHES)
    assert found == FabricManager(switches=2, running=False, version=None)


def test_nothing_is_asked_without_switches() -> None:
    nodes = NvidiaKernel(device_nodes=("nvidia0", "nvidia-nvlink", "nvidiactl"))
    assert fabric_manager.function(FakeHost(), nodes) == FabricManager()
