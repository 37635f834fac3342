"""Rows of `nccl-ib-or-socket-interface`: names of interfaces against those of the node."""

from __future__ import annotations

import pytest

from dsdoctor.api import Environment, LaunchCommand, NcclFiles, NetInterface, Network, RdmaPort
from dsdoctor.probes.network import parse_settings
from dsdoctor.testing import judge
from dsdoctor_checks.nccl import nccl_ib_or_socket_interface

CHECK = nccl_ib_or_socket_interface.interfaces_exist
NODE = Network(
    interfaces=(
        NetInterface(name="lo", loopback=True, addresses=("127.0.0.1",)),
        NetInterface(name="eth0", addresses=("10.0.0.1",)),
        NetInterface(name="ib0", up=False, addresses=("10.1.0.1",)),
        NetInterface(name="bond7", addresses=()),
    ),
    rdma=(
        RdmaPort(device="mlx5_1", port=1, state="ACTIVE"),
        RdmaPort(device="mlx5_10", port=1, state="ACTIVE"),
    ),
)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "ok"),
        ({"NCCL_SOCKET_IFNAME": "eth"}, "ok"),
        ({"NCCL_SOCKET_IFNAME": "ens,eth"}, "ok"),
        ({"NCCL_SOCKET_IFNAME": "=eth0"}, "ok"),
        ({"NCCL_SOCKET_IFNAME": "^docker,lo"}, "ok"),
        ({"NCCL_SOCKET_IFNAME": "lo"}, "ok"),
        ({"NCCL_SOCKET_IFNAME": ""}, "ok"),
        ({"NCCL_SOCKET_IFNAME": "ens3"}, "fail"),
        ({"NCCL_SOCKET_IFNAME": "=eth"}, "fail"),
        ({"NCCL_SOCKET_IFNAME": "^eth,lo"}, "fail"),
        ({"NCCL_SOCKET_IFNAME": "ib0"}, "fail"),
        ({"NCCL_SOCKET_IFNAME": "bond7"}, "fail"),
        ({"NCCL_IB_HCA": "mlx5"}, "ok"),
        ({"NCCL_IB_HCA": "=mlx5_1:1"}, "ok"),
        ({"NCCL_IB_HCA": "^mlx5_3"}, "ok"),
        ({"NCCL_IB_HCA": "bnxt", "NCCL_IB_DISABLE": "1"}, "ok"),
        ({"NCCL_IB_HCA": "=mlx5_1:2"}, "warn"),
        ({"NCCL_IB_HCA": "mlx4_0"}, "warn"),
        ({"GLOO_SOCKET_IFNAME": "eth0"}, "ok"),
        ({"GLOO_SOCKET_IFNAME": "eth"}, "warn"),
        ({"GLOO_SOCKET_IFNAME": "eth0,ib0"}, "warn"),
    ],
)
def test_rows(variables: dict[str, str], expected: str) -> None:
    assert (
        judge(CHECK, network=NODE, environment=Environment(variables=variables)).status == expected
    )


def test_addresses_that_are_not_told_are_no_fault() -> None:
    network = Network(interfaces=(NetInterface(name="eth0"),))
    env = Environment(variables={"NCCL_SOCKET_IFNAME": "eth0"})
    assert judge(CHECK, network=network, environment=env).status == "ok"


def test_the_place_is_named() -> None:
    files = NcclFiles(files=(parse_settings("NCCL_SOCKET_IFNAME=ens3\n", "/etc/nccl.conf"),))
    (finding,) = judge(CHECK, network=NODE, environment=Environment(), nccl_files=files).bad
    assert "line 1 of `/etc/nccl.conf` matches no interface" in finding.message
    assert "this node has eth0" in finding.message
    command = LaunchCommand(env={"NCCL_SOCKET_IFNAME": "eth0"})
    assert (
        judge(
            CHECK, network=NODE, environment=Environment(), nccl_files=files, launch_command=command
        ).status
        == "ok"
    )
