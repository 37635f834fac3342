"""NCCL uses a wrong or unreachable interface, or InfiniBand fails.

## Why it matters
NCCL picks an interface by name and order. If the other nodes cannot reach it, or InfiniBand cannot lock
memory, the first collective fails. If `NCCL_SOCKET_IFNAME` matches no interface of this node, NCCL fails
with `no socket interface found`, even on a single node. If `NCCL_IB_HCA` matches no adapter, the job runs
over TCP, many times slower. A container on Docker's own bridge has an address that other nodes cannot reach.
`NCCL_NET` leaves NCCL no other choice: if the network that it selects is not
there (a plugin that is not installed, `IB` in a container without `/dev/infiniband`), every job fails, even
on a single node. EFA adapters need a plugin, aws-ofi-nccl. With RoCE, `NCCL_IB_GID_INDEX` has to be an entry
of the port's GID table that other nodes can reach.

## What to do
Set `NCCL_SOCKET_IFNAME` to the interface that reaches the other nodes. For InfiniBand, check
memlock and `ibstat`. Both variables take a list of prefixes; a leading `=` matches whole names, `^`
excludes. Write `^docker,lo`, not `^docker`: NCCL excludes the loopback interface on its own only if
the variable is not set. Unset `NCCL_NET`, or put the folder of its plugin on `LD_LIBRARY_PATH`.
`show_gids` lists the GID table; NCCL 2.21 and newer find the right entry themselves.

## References
- NCCL 2.30.7 src/misc/socket.cc (`ncclFindInterfaces`), src/transport/net_ib, src/plugin/net.cc
- horovod/horovod#700 (2018-12-13): NCCL takes `lo` with `^docker0`, as its maintainer says
- https://docs.docker.com/engine/network/drivers/bridge/: containers on the default bridge of two hosts
- https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start-nccl.html
- https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
- torch distributed/c10d/ProcessGroupGloo.cpp: GLOO_SOCKET_IFNAME takes whole names
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Hostfile,
    LaunchCommand,
    Missing,
    NcclFiles,
    NcclPlugins,
    NetInterface,
    Network,
    OsInfo,
    RunNeeds,
    Scope,
    check,
    fail,
    ok,
    warn,
)
from dsdoctor_checks._util import fixable, job_environment, listed, node_count, unset_by, variable
from dsdoctor_checks._where import on_host

from . import _nccl_ib_or_socket_interface_signatures, _networks
from ._settings import Setting, parse_pattern, settings

CONDITION = Condition(
    "nccl-ib-or-socket-interface",
    id="DSD851",
    scope=Scope.JOB,
    since="0.1",
    transient="a link that was down may be up next time",
)


def _usable(interface: NetInterface) -> bool:
    """Whether NCCL sees it: getifaddrs lists it with an address, and it is up."""
    return interface.up and interface.addresses != ()


def _socket(setting: Setting, network: Network, nodes: int) -> Iterator[Finding]:
    pattern = parse_pattern(setting.value)
    matching = [item for item in network.interfaces if pattern.matches(item.name)]
    if any(_usable(item) for item in matching):
        others = [item.name for item in network.interfaces if _usable(item) and not item.loopback]
        loopback = [item.loopback for item in matching if _usable(item)]
        if nodes > 1 and others and any(loopback):
            # the kernel's first interface is the loopback, and NCCL's bootstrap takes the first
            yield fail(
                f"{setting.shown} matches only the loopback interface, but the job has {nodes} nodes"
                if all(loopback)
                else f"{setting.shown} makes NCCL try the loopback interface first, but the job has"
                f" {nodes} nodes",
                effect="the ranks of different nodes cannot connect, and NCCL hangs or stops with a"
                " system error",
                hint=f"{setting.remedy}, or set it to the interface that reaches the other nodes"
                f" (this node has {listed(others)})",
                variable=setting.name,
                value=setting.value,
                interfaces=others,
                nodes=nodes,
            )
            return
        yield ok(interfaces=[item.name for item in matching if _usable(item)])
        return
    there = [item.name for item in network.interfaces if _usable(item) and not item.loopback]
    usable = listed(there) if there else "none that is up"
    hit = "no interface of this node"
    if matching:
        names = listed(item.name for item in matching)
        hit = f"only {names}, which is down or has no address"
    yield fail(
        f"{setting.shown} matches {hit}, but this node has {usable}",
        effect="NCCL fails with `Bootstrap : no socket interface found`",
        hint=f"{setting.remedy}, or set it to an interface from `ip -br addr` that every node has",
        variable=setting.name,
        value=setting.value,
        interfaces=there,
        matching=[item.name for item in matching],
    )


def _adapters(setting: Setting, network: Network) -> Iterator[Finding]:
    pattern = parse_pattern(setting.value)
    ports = [port for port in network.rdma if pattern.matches(port.device, port.port)]
    if ports:
        yield ok(adapters=[f"{port.device}:{port.port}" for port in ports])
        return
    if pattern.exclude and not network.rdma:
        return  # nothing is left out of nothing
    there = sorted({port.device for port in network.rdma})
    named = listed(there) if there else "none at all"
    yield warn(
        f"{setting.shown} matches no RDMA adapter, but this node has {named}",
        effect="NCCL ignores InfiniBand and RoCE and uses TCP, which is many times slower",
        hint=f"{setting.remedy}, or set it to an adapter that `ls /sys/class/infiniband` lists",
        variable=setting.name,
        value=setting.value,
        adapters=there,
    )


def _gloo(
    value: str, network: Network, command: LaunchCommand | Missing, *, alone: bool
) -> Iterator[Finding]:
    """Judges the interface of gloo: a failure if no other backend can connect the ranks."""
    names = [name.strip() for name in value.split(",") if name.strip()]
    known = {item.name: item for item in network.interfaces}
    wrong = [name for name in names if name not in known or not _usable(known[name])]
    if not wrong:
        return
    there = [item.name for item in network.interfaces if _usable(item) and not item.loopback]
    usable = listed(there) if there else "no interface that is up"
    remedy = unset_by(command, "GLOO_SOCKET_IFNAME")
    yield (fail if alone else warn)(
        f"`GLOO_SOCKET_IFNAME={value}` selects {listed(wrong)}, but this node has {usable}",
        effect="process groups with the gloo backend fail with `Unable to find address for`",
        hint=f"{remedy}, or set it to an interface from `ip -br addr`",
        variable="GLOO_SOCKET_IFNAME",
        value=value,
        wrong=wrong,
        interfaces=there,
    )


@check(CONDITION)
def interfaces_exist(
    network: Network,
    env: Environment | Missing,
    files: NcclFiles | Missing,
    command: LaunchCommand | Missing,
    gpus: Gpus | Missing,
    hostfile: Hostfile | Missing,
    plugins: NcclPlugins | Missing,
    os: OsInfo | Missing,
    run: RunNeeds,
) -> Iterator[Finding]:
    """Compares the variables that name networks, interfaces and adapters with those of this node."""
    found = settings(env, files, command)
    nodes = node_count(env, hostfile, command)
    moved = not isinstance(command, Missing) and "LD_LIBRARY_PATH" in command.env
    known = None if moved or isinstance(plugins, Missing) else plugins
    yield from _networks.selected(found, network, known, container=bool(on_host(os)))
    chosen = found.get("NCCL_SOCKET_IFNAME")
    if chosen is not None and len(chosen.value) > 1:  # NCCL ignores a value of one character
        yield from _socket(chosen, network, nodes)
    adapters = found.get("NCCL_IB_HCA")
    disabled = found.get("NCCL_IB_DISABLE")
    enabled = disabled is None or disabled.value != "1"
    if adapters is not None and adapters.value and enabled:
        yield from _adapters(adapters, network)
    if nodes > 1 and enabled:
        yield from _networks.gid_index(found, network)
        yield from _networks.efa_without_plugin(found, network, known)
    if nodes > 1:
        yield from _networks.behind_bridge(network, os, nodes)
    if run.container is not None:
        yield from _networks.started_behind_bridge(run.container)
    gloo = variable(job_environment(env, command), "GLOO_SOCKET_IFNAME")
    if gloo:
        ranks = not isinstance(command, Missing) and command.launcher != "python"
        alone = ranks and isinstance(gpus, Gpus) and not gpus.gpus
        for finding in _gloo(gloo, network, command, alone=alone):
            yield fixable(finding, command, "GLOO_SOCKET_IFNAME")


HINT = (
    "set `NCCL_SOCKET_IFNAME` to the interface that reaches the other nodes; for InfiniBand, check"
    " memlock and `ibstat`"
)

SIGNATURES = _nccl_ib_or_socket_interface_signatures.SIGNATURES
