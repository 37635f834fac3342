"""Interfaces, RDMA ports and NCCL's files."""

from __future__ import annotations

import sys

import pytest

from dsdoctor.host import HostError, LocalHost
from dsdoctor.model.facts.python import Patient
from dsdoctor.probes.nccl_plugins import nccl_plugins
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


def test_what_programs_need_to_use_an_adapter() -> None:
    host = FakeHost(
        files={**NODE, "/dev/infiniband/uverbs0": "", "/dev/infiniband/rdma_cm": ""},
        links={f"{IB}/device/driver": "../../../../bus/pci/drivers/mlx5_core"},
    )
    fact = network.function(host)
    assert (fact.verbs, fact.rdma[0].driver, fact.rdma[0].gids) == (
        ("uverbs0",),
        "mlx5_core",
        None,
    )
    bare = network.function(FakeHost(files=NODE))
    assert (bare.verbs, bare.rdma[0].driver) == ((), None)


def test_the_gid_table_of_a_roce_port() -> None:
    port = f"{IB}/ports/1"
    empty = "0000:0000:0000:0000:0000:0000:0000:0000"
    addresses = {
        0: "fe80:0000:0000:0000:0ac0:ebff:feda:1cfb",
        1: empty,
        2: "fe80:0000:0000:0000:0000:0000:0000:0000",  # of a port without a GUID
        3: "0000:0000:0000:0000:0000:ffff:0a00:0001",
        200: "0000:0000:0000:0000:0000:ffff:0a00:0002",
    }
    files = {f"{port}/gids/{index}": f"{address}\n" for index, address in addresses.items()}
    files |= {f"{port}/gid_attrs/types/{index}": "RoCE v2\n" for index in (0, 3)}
    host = FakeHost(files={**NODE, f"{port}/link_layer": "Ethernet\n", **files})
    (found,) = network.function(host).rdma
    assert [(gid.index, gid.kind, gid.link_local) for gid in found.gids or ()] == [
        (0, "RoCE v2", True),
        (3, "RoCE v2", False),
    ]
    assert [index for index in (0, 1, 2, 3, 15, 16, 200) if found.lacks_gid(index)] == [1, 2, 15]


@pytest.mark.parametrize(
    ("place", "environ"),
    [
        pytest.param("/opt/ofi/lib", {"LD_LIBRARY_PATH": "/nowhere::/opt/ofi/lib"}, id="the path"),
        pytest.param("/opt/amazon/lib", {}, id="the loader's configuration"),
        pytest.param("/usr/lib64", {}, id="a folder of the system"),
        pytest.param("/env/lib", {}, id="the environment"),
        pytest.param("/env/site/nvidia/nccl/lib", {}, id="beside NCCL"),
    ],
)
def test_plugins_where_nccl_looks_for_them(place: str, environ: dict[str, str]) -> None:
    files = {
        "/etc/ld.so.conf": "include /etc/ld.so.conf.d/*.conf\n",
        "/etc/ld.so.conf.d/ofi.conf": "/opt/amazon/lib\n",
        f"{place}/libnccl-net.so": "",
        f"{place}/librccl-net.so.0": "",
        f"{place}/libnccl.so.2": "",
        "/home/u/lib/libnccl-net.so": "",
    }
    patient = Patient(
        executable="/env/bin/python",
        chosen_by="test",
        version="3.12.1",
        prefix="/env",
        sys_path=("/env/site",),
    )
    fact = nccl_plugins.function(FakeHost(files=files, env=environ), patient)
    assert fact.libraries == (f"{place}/libnccl-net.so", f"{place}/librccl-net.so.0")


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
