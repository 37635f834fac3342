"""The PCI tree from sysfs."""

from __future__ import annotations

import sys

import pytest

from dsdoctor.host import HostError, LocalHost
from dsdoctor.probes.pci import parse_acs, pci_tree
from dsdoctor.testing import FakeHost
from tests.checks import machines

DEVICES = "/sys/bus/pci/devices"
REAL = "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0"
ACS_ON = bytes(256) + (0x0D).to_bytes(4, "little") + b"\0\0\x1d\0" + bytes(8)
ACS_OFF = bytes(256) + (0x0D).to_bytes(4, "little") + b"\0\0\x10\0" + bytes(8)
CHAINED = (
    bytes(256)
    + (0x148 << 20 | 0x1_0001).to_bytes(4, "little")
    + bytes(0x148 - 260)
    + (0x1_000D).to_bytes(4, "little")
    + b"\0\0\x04\0"
    + bytes(8)
)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param(ACS_ON, True, id="on"),
        pytest.param(ACS_OFF, False, id="off"),
        pytest.param(CHAINED, True, id="on, behind another capability"),
        pytest.param(bytes(64), None, id="a header alone"),
        pytest.param(bytes(256), False, id="no extended capabilities"),
    ],
)
def test_access_control_services(config: bytes, expected: bool | None) -> None:
    assert parse_acs(config) is expected


def test_a_capability_list_that_bites_its_tail() -> None:
    loop = bytes(256) + (0x100 << 20 | 0x1_0001).to_bytes(4, "little") + bytes(64)
    assert parse_acs(loop) is False


def host(config: bytes) -> FakeHost:
    return FakeHost(
        files={
            f"{DEVICES}/0000:15:01.0/config": bytes(4096),
            f"{DEVICES}/0000:16:00.0/config": config,
            f"{REAL}/0000:1b:00.0/numa_node": "1\n",
            "/sys/devices/system/node/node1/cpulist": "32-63,96-127\n",
            "/sys/devices/system/cpu/cpu32/topology/physical_package_id": "1\n",
            f"{REAL}/0000:1b:00.0/iommu_group/type": "DMA-FQ\n",
            f"{REAL}/0000:1c:00.0/numa_node": "-1\n",
            "/sys/class/infiniband/mlx5_0/node_guid": "x",
            "/proc/cpuinfo": "processor : 0\nflags : fpu hypervisor sse\n",
            "/proc/self/status": "Name: x\nCpus_allowed_list:\t0-3,8\n",
        },
        links={
            f"{DEVICES}/0000:1b:00.0": f"{REAL}/0000:1b:00.0",
            f"{DEVICES}/0000:1c:00.0": f"{REAL}/0000:1c:00.0",
            "/sys/class/infiniband/mlx5_0/device": f"{REAL}/0000:1c:00.0",
        },
    )


def test_a_gpu_and_an_adapter_behind_one_bridge() -> None:
    tree = pci_tree.function(host(ACS_ON), machines.kernel())
    (gpu,), (nic,) = tree.gpus, tree.nics
    assert (gpu.root, gpu.path) == ("pci0000:15", ("0000:15:01.0", "0000:16:00.0"))
    assert (gpu.numa_node, gpu.iommu) == (1, "DMA-FQ")
    assert gpu.socket == 1
    assert (nic.name, nic.bdf, nic.numa_node) == ("mlx5_0", "0000:1c:00.0", None)
    assert nic.socket is None, "its NUMA node is not known"
    assert gpu.level(nic) == "PIX"
    assert tree.redirecting == ("0000:16:00.0",)
    assert tree.virtual
    assert tree.cpus == (0, 1, 2, 3, 8)


def test_what_only_root_may_read() -> None:
    assert pci_tree.function(host(bytes(64)), machines.kernel()).redirecting is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_this_machine() -> None:
    tree = pci_tree.function(LocalHost(), machines.NO_GPU)
    assert tree.gpus == ()
    assert len(tree.cpus) >= 1


def test_not_on_macos() -> None:
    with pytest.raises(HostError):
        pci_tree.function(FakeHost(system="Darwin"), machines.NO_GPU)


def test_a_group_whose_type_the_kernel_does_not_report() -> None:
    group = f"{DEVICES}/0000:1b:00.0/iommu_group/devices/0000:1b:00.0/vendor"
    old = FakeHost(
        files={group: "0x10de\n"},
        links={f"{DEVICES}/0000:1b:00.0": f"{REAL}/0000:1b:00.0"},
    )
    (gpu,) = pci_tree.function(old, machines.kernel()).gpus
    assert gpu.iommu == "unknown"
