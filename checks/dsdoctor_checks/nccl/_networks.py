"""Which network NCCL would use, and whether it can.

Source: NCCL 2.32 src/plugin/net.cc (NCCL_NET compares names without regard to case, and there is no
other network where none fits; up to 2.25 src/net.cc), src/plugin/plugin_open.cc (NCCL_NET_PLUGIN is
a path, a name, or what stands in `libnccl-net-NAME.so`), src/transport/net_ib (GIDs); read 2026-11-28.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

from dsdoctor.api import (
    ContainerStart,
    Finding,
    Missing,
    NcclPlugins,
    Network,
    NotStated,
    OsInfo,
    RdmaPort,
    fail,
    ok,
    warn,
)
from dsdoctor_checks._where import this_container

from ._settings import Setting, parse_pattern

#: The driver of AWS's adapters, which NCCL knows through aws-ofi-nccl only.
EFA = "efa"


def own_ports(network: Network) -> list[RdmaPort]:
    """Active ports that NCCL uses itself."""
    return [port for port in network.rdma if port.active and port.driver != EFA]


def selected(
    found: Mapping[str, Setting], network: Network, plugins: NcclPlugins | None, *, container: bool
) -> Iterator[Finding]:
    """Judges NCCL_NET.

    Args:
        found: NCCL's settings by name.
        network: of the node.
        plugins: those that NCCL would find; None = unknown.
        container: the job runs in one.
    """
    chosen = found.get("NCCL_NET")
    if chosen is None or not chosen.value or chosen.value.lower() == "socket":
        return
    effect = (
        "NCCL stops with `Failed to initialize any NET plugin` or `network not found`, on a single"
        " node too"
    )
    if chosen.value.lower() == "ib":
        hidden = network.verbs == ()
        if own_ports(network) and not hidden:
            yield ok(network=chosen.value)
            return
        lack = "`/dev/infiniband` is empty" if hidden else "no InfiniBand or RoCE port is active"
        yield fail(
            f"{chosen.shown}, but {lack}{' in this container' if hidden and container else ''}",
            effect=effect,
            hint="start the container with `--device /dev/infiniband`"
            if hidden and container
            else f"{chosen.remedy}, or check the adapters with `ibstat`",
            variable=chosen.name,
            value=chosen.value,
            verbs=network.verbs,
        )
        return
    if plugins is None:
        return
    usable = _libraries(found.get("NCCL_NET_PLUGIN"), plugins)
    if usable:
        yield ok(network=chosen.value, plugins=usable)
        return
    yield fail(
        f"{chosen.shown} selects a network of a plugin, but no `libnccl-net*.so` is on"
        " `LD_LIBRARY_PATH` or where the loader looks",
        effect=effect,
        hint=f"add the folder of the plugin that provides `{chosen.value}` to `LD_LIBRARY_PATH`, or"
        f" {chosen.remedy}",
        variable=chosen.name,
        value=chosen.value,
    )


def _libraries(plugin: Setting | None, plugins: NcclPlugins) -> list[str]:
    """Libraries of which NCCL would load one."""
    if plugin is None or not plugin.value:
        return list(plugins.libraries)
    names = plugin.value.split(",")
    wanted = {name for part in names for name in (part, f"libnccl-net-{part}.so")}
    paths = [path for path in plugins.libraries if posixpath.basename(path) in wanted]
    return paths + [part for part in names if part.startswith("/")]


def efa_without_plugin(
    found: Mapping[str, Setting], network: Network, plugins: NcclPlugins | None
) -> Iterator[Finding]:
    """Judges nodes whose only adapters are AWS's, for runs over several nodes."""
    adapters = [port.device for port in network.rdma if port.active and port.driver == EFA]
    if not adapters or own_ports(network) or plugins is None or "NCCL_NET" in found:
        return
    if _libraries(found.get("NCCL_NET_PLUGIN"), plugins):
        yield ok(adapters=adapters, plugins=plugins.libraries)
        return
    yield warn(
        f"this node has {len(adapters)} EFA adapters, but NCCL finds no `libnccl-net*.so`"
        " (aws-ofi-nccl), without which it cannot use them"
        if len(adapters) > 1
        else f"this node has an EFA adapter ({adapters[0]}), but NCCL finds no `libnccl-net*.so`"
        " (aws-ofi-nccl), without which it cannot use it",
        effect="NCCL connects the nodes over TCP, many times slower",
        hint="install aws-ofi-nccl (AWS's EFA installer has it) and add its folder, such as"
        " `/opt/amazon/ofi-nccl/lib`, to `LD_LIBRARY_PATH`",
        adapters=adapters,
    )


def gid_index(found: Mapping[str, Setting], network: Network) -> Iterator[Finding]:
    """Judges NCCL_IB_GID_INDEX against the tables of the RoCE ports, for runs over several nodes."""
    chosen = found.get("NCCL_IB_GID_INDEX")
    if chosen is None or not chosen.value.isdecimal():
        return
    index = int(chosen.value)
    named = found.get("NCCL_IB_HCA")
    pattern = parse_pattern(named.value) if named and named.value else None
    for port in own_ports(network):
        if pattern is not None and not pattern.matches(port.device, port.port):
            continue
        gid = port.gid(index)
        routed = [
            gid.index for gid in port.gids or () if gid.kind == "RoCE v2" and not gid.link_local
        ]
        better = f"; other nodes can reach entry {routed[0]}" if routed else ""
        if port.lacks_gid(index):
            yield fail(
                f"{chosen.shown}, but entry {index} of the GID table of {port.device} is empty",
                effect="NCCL stops with `ibv_modify_qp failed` when it connects the nodes",
                hint=f"{chosen.remedy}, since NCCL 2.21 and newer find the entry themselves{better}",
                port=port.device,
                index=index,
                routed=routed,
            )
            return
        if gid is not None and gid.link_local and routed:
            yield warn(
                f"{chosen.shown} selects a link-local address of {port.device}, which routers do"
                " not forward to",
                effect="if a router is between the nodes, NCCL stops with `ibv_modify_qp failed`"
                " (connection timed out)",
                hint=f"{chosen.remedy}{better}",
                port=port.device,
                index=index,
                routed=routed,
            )
            return


#: Addresses of the bridge that a container gets without `--network`: docker 1.9 to 28 (`bip`), podman
#: 3 to 5 (containers.conf(5), default_subnet).
_BRIDGES = {"docker": "172.17.", "podman": "10.88."}


_UNREACHABLE = (
    "ranks on other nodes cannot connect to its ranks: the first collective fails or hangs"
)


def started_behind_bridge(start: ContainerStart) -> Iterator[Finding]:
    """Judges a command that starts such a container; podman's configuration may say otherwise."""
    program = start.program.partition(" ")[0]
    if program not in ("docker", "nerdctl") or start.nodes == 1 or start.network or start.unknown:
        return
    yield fail(
        f"`{start.program}` without `--network host` gives the container an address that only its own"
        f" host reaches, but `{start.launcher}` starts a run over {start.nodes} nodes",
        effect=_UNREACHABLE,
        hint="add `--network host` before the image, on all nodes",
        program=start.program,
        nodes=start.nodes,
    )


def behind_bridge(network: Network, os: OsInfo | Missing, nodes: int) -> Iterator[Finding]:
    """Judges a container of a run over several nodes that has only the address of a bridge."""
    try:
        container = None if isinstance(os, Missing) else os.container
        prefix = _BRIDGES.get(container or "")
        own = [
            address
            for item in network.interfaces
            if item.up and not item.loopback
            for address in item.addresses or ()
            if ":" not in address
        ]
    except NotStated:  # a paste may not say so
        return
    if prefix is None or not own or not all(address.startswith(prefix) for address in own):
        return
    yield fail(
        f"{this_container(container)} has only the address {own[0]} of a bridge on its own host, but the"
        f" job has {nodes} nodes",
        effect=_UNREACHABLE,
        hint="start the containers of all nodes with `--network host`",
        addresses=own,
        container=container,
        nodes=nodes,
    )
