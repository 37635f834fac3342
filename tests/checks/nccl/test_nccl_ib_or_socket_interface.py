"""Rows of `nccl-ib-or-socket-interface`: names of interfaces against those of the node."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import (
    ContainerStart,
    Environment,
    Gpus,
    LaunchCommand,
    NcclFiles,
    NcclPlugins,
    NetInterface,
    Network,
    OsInfo,
    RdmaPort,
    RunNeeds,
)
from dsdoctor.model.facts.network import Gid
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


def test_leaving_an_adapter_out_of_none_changes_nothing() -> None:
    """A line for all nodes of a cluster, read on one without adapters."""
    for value, expected in (("^mlx5_3", "ok"), ("mlx5_3", "warn")):
        variables = Environment(variables={"NCCL_IB_HCA": value})
        bare = Network(interfaces=NODE.interfaces)
        assert judge(CHECK, network=bare, environment=variables).status == expected


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        pytest.param({}, "ok", id="NCCL chooses for itself"),
        pytest.param({"NCCL_SOCKET_IFNAME": "eth"}, "ok", id="a prefix that eth0 has"),
        pytest.param({"NCCL_SOCKET_IFNAME": "ens,eth"}, "ok", id="the second of two prefixes fits"),
        pytest.param({"NCCL_SOCKET_IFNAME": "=eth0"}, "ok", id="the exact name of an interface"),
        pytest.param(
            {"NCCL_SOCKET_IFNAME": "^docker,lo"},
            "ok",
            id="Docker's bridges and the loopback are left out",
        ),
        pytest.param({"NCCL_SOCKET_IFNAME": "lo"}, "ok", id="the loopback is asked for by name"),
        pytest.param(
            {"NCCL_SOCKET_IFNAME": "lo", "SLURM_JOB_NUM_NODES": "2"},
            "fail",
            id="the loopback for two nodes",
        ),
        pytest.param({"NCCL_SOCKET_IFNAME": "^docker"}, "ok", id="the loopback, on a single node"),
        pytest.param(
            {"NCCL_SOCKET_IFNAME": "^docker", "SLURM_JOB_NUM_NODES": "2"},
            "fail",
            id="the loopback is not left out, for two nodes",
        ),
        pytest.param(
            {"NCCL_SOCKET_IFNAME": "^docker,lo", "SLURM_JOB_NUM_NODES": "2"},
            "ok",
            id="the loopback is left out, for two nodes",
        ),
        pytest.param({"NCCL_SOCKET_IFNAME": ""}, "ok", id="an empty value is no choice"),
        pytest.param(
            {"NCCL_SOCKET_IFNAME": "ens3"}, "fail", id="a prefix that none of the interfaces has"
        ),
        pytest.param(
            {"NCCL_SOCKET_IFNAME": "=eth"}, "fail", id="a prefix where an exact name is asked for"
        ),
        pytest.param(
            {"NCCL_SOCKET_IFNAME": "^eth,lo"},
            "fail",
            id="all interfaces with an address are left out",
        ),
        pytest.param({"NCCL_SOCKET_IFNAME": "ib0"}, "fail", id="the interface is down"),
        pytest.param({"NCCL_SOCKET_IFNAME": "bond7"}, "fail", id="the interface has no address"),
        pytest.param({"NCCL_IB_HCA": "mlx5"}, "ok", id="a prefix that both adapters have"),
        pytest.param(
            {"NCCL_IB_HCA": "=mlx5_1:1"}, "ok", id="the exact name and port of an adapter"
        ),
        pytest.param(
            {"NCCL_IB_HCA": "^mlx5_3"}, "ok", id="an adapter that is not there is left out"
        ),
        pytest.param(
            {"NCCL_IB_HCA": "bnxt", "NCCL_IB_DISABLE": "1"},
            "ok",
            id="an unknown adapter where InfiniBand is disabled",
        ),
        pytest.param({"NCCL_IB_HCA": "=mlx5_1:2"}, "warn", id="port 2 of an adapter with one port"),
        pytest.param({"NCCL_IB_HCA": "mlx4_0"}, "warn", id="an adapter that is not there"),
        pytest.param(
            {"GLOO_SOCKET_IFNAME": "eth0"}, "ok", id="Gloo takes the exact name of an interface"
        ),
        pytest.param({"GLOO_SOCKET_IFNAME": "eth"}, "warn", id="Gloo does not take a prefix"),
        pytest.param(
            {"GLOO_SOCKET_IFNAME": "eth0,ib0"},
            "warn",
            id="Gloo does not take an interface that is down",
        ),
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


@pytest.mark.parametrize(
    ("launcher", "expected"),
    [
        pytest.param("torchrun", "fail", id="gloo connects the ranks of a node without GPUs"),
        pytest.param("python", "warn", id="one process may need no backend"),
    ],
)
def test_gloo_is_the_only_backend_without_gpus(launcher: str, expected: str) -> None:
    env = Environment(variables={"GLOO_SOCKET_IFNAME": "eth9"})
    command = LaunchCommand(launcher=launcher)
    found = judge(CHECK, network=NODE, environment=env, launch_command=command, gpus=Gpus())
    assert found.status == expected


# ---- NCCL_NET, EFA and GIDs -----------------------------------------------------------------------

PLUGIN = "/opt/amazon/ofi-nccl/lib/libnccl-net.so"
NO_PLUGIN = NcclPlugins()
WITH_PLUGIN = NcclPlugins(libraries=(PLUGIN,))


def adapters(*ports: RdmaPort, verbs: tuple[str, ...] | None = ("uverbs0",)) -> Network:
    return Network(interfaces=NODE.interfaces, rdma=ports, verbs=verbs)


MLX = RdmaPort(device="mlx5_0", port=1, state="ACTIVE", driver="mlx5_core")
EFA = RdmaPort(device="rdmap0s6", port=1, state="ACTIVE", driver="efa")


@pytest.mark.parametrize(
    ("network", "plugins", "variables", "expected"),
    [
        pytest.param(NODE, NO_PLUGIN, {"NCCL_NET": "Socket"}, "ok", id="TCP is always there"),
        pytest.param(
            adapters(MLX), NO_PLUGIN, {"NCCL_NET": "ib"}, "ok", id="InfiniBand with a port"
        ),
        pytest.param(
            adapters(), NO_PLUGIN, {"NCCL_NET": "IB"}, "fail", id="InfiniBand without a port"
        ),
        pytest.param(
            adapters(EFA), NO_PLUGIN, {"NCCL_NET": "IB"}, "fail", id="EFA is no InfiniBand"
        ),
        pytest.param(
            adapters(MLX, verbs=()),
            NO_PLUGIN,
            {"NCCL_NET": "IB"},
            "fail",
            id="a container without the device nodes",
        ),
        pytest.param(
            adapters(MLX, verbs=None), NO_PLUGIN, {"NCCL_NET": "IB"}, "ok", id="nodes not read"
        ),
        pytest.param(
            adapters(EFA), NO_PLUGIN, {"NCCL_NET": "AWS Libfabric"}, "fail", id="no plugin"
        ),
        pytest.param(
            adapters(EFA), WITH_PLUGIN, {"NCCL_NET": "AWS Libfabric"}, "ok", id="a plugin"
        ),
        pytest.param(
            adapters(EFA),
            WITH_PLUGIN,
            {"NCCL_NET": "gIB", "NCCL_NET_PLUGIN": "gib"},
            "fail",
            id="only a plugin of another name",
        ),
        pytest.param(
            adapters(EFA),
            NcclPlugins(libraries=("/usr/local/gib/lib64/libnccl-net-gib.so",)),
            {"NCCL_NET": "gIB", "NCCL_NET_PLUGIN": "gib"},
            "ok",
            id="the plugin of that name",
        ),
        pytest.param(
            adapters(EFA),
            NO_PLUGIN,
            {"NCCL_NET": "gIB", "NCCL_NET_PLUGIN": "/opt/gib/libnccl-net.so"},
            "ok",
            id="a plugin by its path",
        ),
    ],
)
def test_the_network_that_is_selected(
    network: Network, plugins: NcclPlugins, variables: dict[str, str], expected: str
) -> None:
    env = Environment(variables=variables)
    found = judge(CHECK, network=network, nccl_plugins=plugins, environment=env)
    assert found.status == expected


def test_plugins_are_not_judged_where_the_command_changes_the_path() -> None:
    command = LaunchCommand(argv=("torchrun",), env={"LD_LIBRARY_PATH": "/x", "NCCL_NET": "gIB"})
    found = judge(CHECK, network=NODE, nccl_plugins=NO_PLUGIN, launch_command=command)
    assert found.status == "ok"


@pytest.mark.parametrize(
    ("ports", "plugins", "variables", "expected"),
    [
        pytest.param((EFA,), NO_PLUGIN, {"SLURM_NNODES": "2"}, "warn", id="EFA without its plugin"),
        pytest.param((EFA,), WITH_PLUGIN, {"SLURM_NNODES": "2"}, "ok", id="EFA with its plugin"),
        pytest.param((EFA,), NO_PLUGIN, {}, "ok", id="a run on one node"),
        pytest.param((EFA, MLX), NO_PLUGIN, {"SLURM_NNODES": "2"}, "ok", id="InfiniBand as well"),
        pytest.param(
            (EFA,),
            NO_PLUGIN,
            {"SLURM_NNODES": "2", "NCCL_NET": "Socket"},
            "ok",
            id="TCP was asked for",
        ),
    ],
)
def test_adapters_that_need_a_plugin(
    ports: tuple[RdmaPort, ...], plugins: NcclPlugins, variables: dict[str, str], expected: str
) -> None:
    env = Environment(variables=variables)
    found = judge(CHECK, network=adapters(*ports), nccl_plugins=plugins, environment=env)
    assert found.status == expected


LOCAL = "fe80:0000:0000:0000:0ac0:ebff:feda:1cfb"
MAPPED = "0000:0000:0000:0000:0000:ffff:0a00:0001"
TABLE = (
    Gid(index=0, address=LOCAL, kind="IB/RoCE v1"),
    Gid(index=1, address=LOCAL, kind="RoCE v2"),
    Gid(index=2, address=MAPPED, kind="IB/RoCE v1"),
    Gid(index=3, address=MAPPED, kind="RoCE v2"),
)


@pytest.mark.parametrize(
    ("table", "index", "expected"),
    [
        pytest.param(TABLE, "3", "ok", id="an address that others reach"),
        pytest.param(TABLE, "1", "warn", id="an address of this link only"),
        pytest.param(TABLE[:2], "3", "fail", id="an entry that is empty"),
        pytest.param(TABLE[:2], "1", "ok", id="an address of this link, where there is no other"),
        pytest.param(TABLE, "200", "ok", id="an entry beyond those that were read"),
        pytest.param(None, "3", "ok", id="a table that was not read"),
        pytest.param(TABLE, "-1", "ok", id="NCCL chooses"),
    ],
)
def test_the_entry_of_the_gid_table(
    table: tuple[Gid, ...] | None, index: str, expected: str
) -> None:
    port = RdmaPort(
        device="mlx5_0",
        port=1,
        state="ACTIVE",
        link_layer="Ethernet",
        driver="mlx5_core",
        gids=table,
    )
    variables = {"NCCL_IB_GID_INDEX": index, "SLURM_NNODES": "2"}
    for more, status in (
        ({}, expected),
        ({"NCCL_IB_HCA": "mlx5_1"}, "warn"),  # matches no adapter, which is what is said
        ({"NCCL_IB_DISABLE": "1"}, "ok"),
        ({"SLURM_NNODES": "1"}, "ok"),
    ):
        env = Environment(variables=variables | more)
        assert judge(CHECK, network=adapters(port), environment=env).status == status, more


@pytest.mark.parametrize(
    ("container", "addresses", "nodes", "expected"),
    [
        pytest.param("docker", ("172.17.0.2",), "2", "fail", id="Docker's bridge"),
        pytest.param("podman", ("10.88.0.7", "fe80::1"), "2", "fail", id="podman's bridge"),
        pytest.param("docker", ("172.17.0.2",), "1", "ok", id="a single node"),
        pytest.param("docker", ("172.17.0.2", "10.0.1.4"), "2", "ok", id="an overlay network too"),
        pytest.param("docker", ("10.0.0.17",), "2", "ok", id="the network of the host"),
        pytest.param("kubernetes", ("172.17.0.2",), "2", "ok", id="a pod"),
        pytest.param(None, ("172.17.0.2",), "2", "ok", id="no container"),
    ],
)
def test_a_container_that_other_nodes_cannot_reach(
    container: str | None, addresses: tuple[str, ...], nodes: str, expected: str
) -> None:
    lo, eth = NODE.interfaces[0], NetInterface(name="eth0", addresses=addresses)
    system = OsInfo(system="Linux", release="", machine="", hostname="", container=container)
    env = Environment(variables={"SLURM_NNODES": nodes})
    found = judge(CHECK, network=Network(interfaces=(lo, eth)), environment=env, os_info=system)
    assert found.status == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, "fail", id="the bridge of Docker"),
        pytest.param({"network": "--network host"}, "ok", id="the network of the host"),
        pytest.param({"nodes": 1}, "ok", id="a single node"),
        pytest.param({"unknown": True}, "ok", id="options that a shell knows"),
        pytest.param({"program": "podman run"}, "ok", id="podman, whose configuration may say so"),
        pytest.param({"program": "apptainer exec"}, "ok", id="Apptainer uses the host's network"),
    ],
)
def test_a_command_that_starts_such_a_container(fields: dict[str, Any], expected: str) -> None:
    start: dict[str, Any] = {"program": "docker run", "launcher": "torchrun", "nodes": 2}
    run = RunNeeds(container=ContainerStart(**{**start, **fields}))
    assert judge(CHECK, network=NODE, run_needs=run).status == expected
