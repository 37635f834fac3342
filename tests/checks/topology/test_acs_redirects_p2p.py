"""Rows of `acs-redirects-p2p`."""

from __future__ import annotations

import pytest

from dsdoctor.api import GpuTopology, PciPlace, PciTree, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.topology import acs_redirects_p2p
from tests.checks.topology.support import bdf, gpus, switch, topology

CHECK = acs_redirects_p2p.switches_pass_transfers
PLAIN = topology("X PIX\nPIX X")
LINKED = topology("X NV4\nNV4 X")
BARRED = topology("X PIX\nPIX X", "CHIPSET_NOT_SUPPORTED")
PORT = ("0000:17:00.0",)


@pytest.mark.parametrize(
    ("tree", "how", "expected"),
    [
        pytest.param(
            switch("gpu", "gpu"),
            PLAIN,
            "ok",
            id="two GPUs below a switch that passes their transfers",
        ),
        pytest.param(
            switch("gpu", "gpu", redirecting=PORT),
            PLAIN,
            "warn",
            id="the switch redirects transfers of a GPU",
        ),
        pytest.param(
            switch("gpu", "gpu", redirecting=PORT),
            LINKED,
            "ok",
            id="the GPUs use NVLink, so the switch does not matter",
        ),
        pytest.param(
            switch("gpu", "gpu", redirecting=PORT),
            BARRED,
            "ok",
            id="the GPUs cannot reach each other over PCIe at all",
        ),
        pytest.param(
            switch("gpu", "gpu", redirecting=PORT, virtual=True),
            PLAIN,
            "skip",
            id="a virtual machine, which does not see the switch",
        ),
        pytest.param(
            switch("gpu", "gpu", redirecting=None),
            PLAIN,
            "skip",
            id="the registers of the switch may not be read",
        ),
        # on the shared way to the root it is on the way of no transfer between the two
        pytest.param(
            switch("gpu", "gpu", redirecting=("0000:16:00.0",)),
            PLAIN,
            "ok",
            id="the port above the switch redirects, which transfers do not pass",
        ),
        pytest.param(
            switch("gpu", "gpu", "mlx5_0", redirecting=("0000:17:02.0",)),
            LINKED,
            "warn",
            id="the switch redirects transfers of the adapter",
        ),
    ],
)
def test_rows(tree: PciTree, how: GpuTopology, expected: str) -> None:
    assert judge(CHECK, pci_tree=tree, gpus=gpus(2), gpu_topology=how).status == expected


def test_gpus_that_are_not_of_the_run() -> None:
    tree = switch("gpu", "gpu", redirecting=PORT)
    assert (
        judge(
            CHECK, pci_tree=tree, gpus=gpus(2), gpu_topology=PLAIN, run_needs=RunNeeds(gpus=("1",))
        ).status
        == "ok"
    )


def test_the_bridge_is_named() -> None:
    tree = switch("gpu", "gpu", redirecting=PORT)
    (finding,) = judge(CHECK, pci_tree=tree, gpus=gpus(2), gpu_topology=PLAIN).bad
    assert "0000:17:00.0 redirect transfers between GPU 0 and GPU 1" in finding.message


def root_ports(iommu: str | None, *, nic: bool = False) -> PciTree:
    """Two GPUs, or a GPU and an adapter, each on a root port of one host bridge."""
    ports = ("0000:15:01.0", "0000:15:02.0")
    places = [
        PciPlace(
            bdf=bdf(index),
            name="mlx5_0" if nic and index else "",
            root="pci0000:15",
            path=(port,),
            iommu=iommu,
        )
        for index, port in enumerate(ports)
    ]
    return PciTree(
        gpus=tuple(one for one in places if not one.name),
        nics=tuple(one for one in places if one.name),
        redirecting=ports,
    )


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        pytest.param(root_ports("DMA-FQ"), "warn", id="the IOMMU translates"),
        pytest.param(root_ports("unknown"), "warn", id="the kernel does not report the type"),
        pytest.param(root_ports("identity"), "ok", id="iommu=pt"),
        pytest.param(root_ports(None), "ok", id="no IOMMU"),
        pytest.param(root_ports("DMA-FQ", nic=True), "ok", id="an adapter"),
    ],
)
def test_root_ports(tree: PciTree, expected: str) -> None:
    assert (
        judge(CHECK, pci_tree=tree, gpus=gpus(2), gpu_topology=topology("X PHB\nPHB X")).status
        == expected
    )


def host_bridges(iommu: str | None, *, numa: tuple[int, int] = (0, 0)) -> PciTree:
    """Two GPUs, each on a root port of a host bridge of its own."""
    ports = ("0000:40:03.1", "0000:60:03.1")
    places = tuple(
        PciPlace(bdf=bdf(index), root=port[:7], path=(port,), numa_node=numa[index], iommu=iommu)
        for index, port in enumerate(ports)
    )
    return PciTree(gpus=places, redirecting=ports)


@pytest.mark.parametrize(
    ("tree", "how", "expected"),
    [
        pytest.param(host_bridges("DMA-FQ"), "OK", "warn", id="the IOMMU translates"),
        pytest.param(host_bridges("identity"), "OK", "ok", id="iommu=pt"),
        pytest.param(host_bridges("DMA", numa=(0, 1)), "OK", "ok", id="on two sockets"),
        pytest.param(host_bridges("DMA"), "CHIPSET_NOT_SUPPORTED", "ok", id="no peer access"),
    ],
)
def test_root_ports_of_two_host_bridges(tree: PciTree, how: str, expected: str) -> None:
    between = topology("X NODE\nNODE X", how)
    assert judge(CHECK, pci_tree=tree, gpus=gpus(2), gpu_topology=between).status == expected
