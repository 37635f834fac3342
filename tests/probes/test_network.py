"""Interfaces, RDMA ports and NCCL's files."""

from __future__ import annotations

import sys

import pytest

from dsdoctor.host import HostError, LocalHost
from dsdoctor.probes.network import nccl_files, network
from dsdoctor.testing import FakeHost

IB = "/sys/class/infiniband/mlx5_0"
NODE = {
    "/sys/class/net/lo/flags": "0x9\n",
    "/sys/class/net/eth0/flags": "0x1003\n",
    "/sys/class/net/ib0/flags": "0x1002\n",
    f"{IB}/hca_type": "MT4129\n",
    f"{IB}/ports/1/state": "4: ACTIVE\n",
    f"{IB}/ports/1/phys_state": "5: LinkUp\n",
    f"{IB}/ports/1/link_layer": "InfiniBand\n",
    f"{IB}/ports/1/rate": "400 Gb/sec (4X NDR)\n",
}


def test_a_node_with_infiniband() -> None:
    host = FakeHost(files=NODE, queries={"addresses": {"eth0": ["10.0.0.1"], "lo": ["127.0.0.1"]}})
    fact = network.function(host)
    assert [(i.name, i.up, i.loopback, i.addresses) for i in fact.interfaces] == [
        ("eth0", True, False, ("10.0.0.1",)),
        ("ib0", False, False, ()),
        ("lo", True, True, ("127.0.0.1",)),
    ]
    (port,) = fact.rdma
    assert (port.device, port.port, port.active, port.rate_gbps, port.kind) == (
        "mlx5_0",
        1,
        True,
        400.0,
        "MT4129",
    )


def test_addresses_that_cannot_be_asked_are_not_told() -> None:
    fact = network.function(FakeHost(files=NODE))
    assert {i.addresses for i in fact.interfaces} == {None}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /sys")
def test_this_machine_has_a_loopback() -> None:
    loopback = [i for i in network.function(LocalHost()).interfaces if i.loopback]
    assert [i.name for i in loopback] == ["lo"]
    assert "127.0.0.1" in (loopback[0].addresses or ())


def test_not_on_macos() -> None:
    with pytest.raises(HostError):
        network.function(FakeHost(system="Darwin"))


FILES = {"/root/.nccl.conf": "NCCL_DEBUG=INFO\n", "/etc/nccl.conf": "NCCL_ALGO=Ring\n"}


def test_the_user_s_file_comes_first() -> None:
    fact = nccl_files.function(FakeHost(files=FILES, queries={"home": "/root"}))
    assert [file.path for file in fact.files] == ["/root/.nccl.conf", "/etc/nccl.conf"]
    assert fact.named is None
    assert fact.home_hidden is None


def test_a_named_file_hides_the_user_s_own() -> None:
    env = {"NCCL_CONF_FILE": "/x.conf", "HOME": "/root"}
    fact = nccl_files.function(FakeHost(files=FILES, env=env))
    assert [file.path for file in fact.files] == ["/etc/nccl.conf"]
    assert (fact.named, fact.named_exists) == ("/x.conf", False)
    assert fact.home_hidden == "/root/.nccl.conf"
