"""Problems between nodes: names, ports, interfaces, slots, clocks. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from dsdoctor.fleet.merge import FleetFinding
from dsdoctor.fleet.names import fold
from dsdoctor.fleet.nodes import NodeReport

#: Clocks that differ by more than this mix up logs; Munge and Kerberos reject 300 s.
SKEW_SECONDS = 5.0
SKEW_FATAL_SECONDS = 300.0
_IFNAME_TRAIT = "variable NCCL_SOCKET_IFNAME"


def between(
    nodes: Sequence[NodeReport],
    *,
    slots: Mapping[str, int] | None = None,
    master: str | None = None,
    socket_ifname: str | None = None,
) -> list[FleetFinding]:
    """Findings that need more than one node.

    Args:
        nodes: reports of the nodes.
        slots: GPUs per node according to the hostfile.
        master: `host:port` that every node had to reach.
        socket_ifname: NCCL_SOCKET_IFNAME of the run.
    """
    answering = [node for node in nodes if node.error is None]
    return [
        *names(answering),
        *ports(answering, master),
        *interfaces(answering, socket_ifname),
        *hostfile(answering, slots or {}),
        *clocks(answering),
    ]


def names(nodes: Sequence[NodeReport]) -> list[FleetFinding]:
    """Whether every node resolves the name of every other node to an address of that node."""
    own = {node.name: set(node.node.addresses) for node in nodes}
    broken: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        for target, answer in node.node.resolved.items():
            trouble = _trouble(answer, own.get(target))
            if trouble is not None:
                broken.setdefault((target, trouble), []).append(node.name)
    return [
        FleetFinding(
            status="fail",
            condition="fleet-name-resolution",
            message=f"`{target}` {trouble}",
            hint="add all node names to DNS, or to `/etc/hosts` on every node",
            nodes=fold(askers),
            count=len(askers),
            evidence={"name": target},
        )
        for (target, trouble), askers in broken.items()
    ]


def _trouble(answer: Sequence[str] | str, own: set[str] | None) -> str | None:
    if isinstance(answer, str):
        return f"has no address there ({answer.removeprefix('error: ')})"
    if all(text.startswith("127.") or text == "::1" for text in answer):
        return f"resolves to {', '.join(answer)}, which no other node can reach"
    reachable = own - {"127.0.0.1"} if own else set()
    if reachable and not reachable.intersection(answer):
        return (
            f"resolves to {', '.join(answer)}, but the node has {', '.join(sorted(reachable)[:3])}"
        )
    return None


def ports(nodes: Sequence[NodeReport], master: str | None) -> list[FleetFinding]:
    """Whether packets reach the master's port; it is normal that nothing listens there yet."""
    if master is None:
        return []
    lost: dict[str, list[str]] = {}
    taken: list[str] = []
    for node in nodes:
        answer = node.node.connected.get(master)
        if answer == "connected":
            taken.append(node.name)
        elif answer not in ("refused", None):
            lost.setdefault(answer, []).append(node.name)
    found = [
        FleetFinding(
            status="fail",
            condition="fleet-port-blocked",
            message=f"`{master}` cannot be reached: {why}",
            hint="open the port between the nodes, or choose another with `--master_port`",
            nodes=fold(who),
            count=len(who),
            evidence={"master": master},
        )
        for why, who in lost.items()
    ]
    if taken:
        found.append(
            FleetFinding(
                status="warn",
                condition="fleet-port-taken",
                message=f"`{master}` is already in use, but the port should be free",
                hint="stop the earlier run, or choose another port with `--master_port`",
                nodes=fold(taken),
                count=len(taken),
                evidence={"master": master},
            )
        )
    return found


def matches(interface: str, pattern: str) -> bool:
    """Whether NCCL_SOCKET_IFNAME matches an interface (NCCL's user guide: environment variables).

    >>> matches("eth0", "eth"), matches("eth10", "=eth1"), matches("docker0", "^docker,lo")
    (True, False, False)
    >>> matches("ib0", "eth,ib"), matches("eth0", "^=eth")
    (True, True)
    """
    negative = pattern.startswith("^")
    text = pattern.removeprefix("^")
    exact = text.startswith("=")
    items = [item.strip() for item in text.removeprefix("=").split(",") if item.strip()]
    hit = any(interface == item if exact else interface.startswith(item) for item in items)
    return hit is not negative


def interfaces(nodes: Sequence[NodeReport], pattern: str | None) -> list[FleetFinding]:
    """Whether each node has an interface that matches NCCL_SOCKET_IFNAME.

    Args:
        nodes: reports of the nodes.
        pattern: of the launching machine, whose NCCL variables DeepSpeed forwards; if it has none,
            the node's own pattern applies.
    """
    lacking: dict[str, list[NodeReport]] = {}
    for node in nodes:
        wanted = pattern or node.traits.get(_IFNAME_TRAIT)
        if wanted and node.node.interfaces and not _has_interface(node, wanted):
            lacking.setdefault(wanted, []).append(node)
    return [_without_interface(wanted, who) for wanted, who in lacking.items()]


def _has_interface(node: NodeReport, pattern: str) -> bool:
    return any(
        matches(name, pattern) and state != "down" and name != "lo"
        for name, state in node.node.interfaces.items()
    )


def _without_interface(pattern: str, nodes: Sequence[NodeReport]) -> FleetFinding:
    have = ", ".join(name for name in nodes[0].node.interfaces if name != "lo")
    return FleetFinding(
        status="fail",
        condition="fleet-interface-missing",
        message=f"`NCCL_SOCKET_IFNAME={pattern}` matches no interface that is up; "
        f"the node has {have or 'none'}",
        hint="set it to an interface that all nodes have, or a prefix such as `eth,ib`",
        nodes=fold(node.name for node in nodes),
        count=len(nodes),
        evidence={"pattern": pattern},
    )


def hostfile(nodes: Iterable[NodeReport], slots: Mapping[str, int]) -> list[FleetFinding]:
    """Whether nodes have as many GPUs as the hostfile lists."""
    wrong: dict[tuple[int, int], list[str]] = {}
    for node in nodes:
        wanted = slots.get(node.name)
        if wanted is not None and node.gpus and wanted != node.gpus:
            wrong.setdefault((wanted, node.gpus), []).append(node.name)
    return [
        FleetFinding(
            status="fail" if wanted > have else "warn",
            condition="fleet-hostfile-slots",
            message=f"the hostfile has `slots={wanted}`, but the node has {have} GPUs",
            hint="correct the hostfile"
            if wanted < have
            else "correct the hostfile, or find out why GPUs are missing",
            nodes=fold(who),
            count=len(who),
            evidence={"slots": str(wanted), "gpus": str(have)},
        )
        for (wanted, have), who in wrong.items()
    ]


def clocks(nodes: Sequence[NodeReport]) -> list[FleetFinding]:
    """Whether clocks agree with the median; the clock of this machine may be the wrong one."""
    offsets = {
        node.name: node.node.clock_offset_s
        for node in nodes
        if node.node.clock_offset_s is not None
    }
    if len(offsets) < 2:  # noqa: PLR2004  # it takes two to differ
        return []
    middle = statistics.median(offsets.values())
    found = []
    for name, offset in offsets.items():
        skew = offset - middle
        if abs(skew) <= SKEW_SECONDS:
            continue
        found.append(
            FleetFinding(
                status="fail" if abs(skew) >= SKEW_FATAL_SECONDS else "warn",
                condition="fleet-clock-skew",
                message=f"the clock is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} "
                f"the others, but should be within {SKEW_SECONDS:g} s",
                hint="synchronize it: `chronyc makestep`, or start `chronyd`",
                nodes=name,
                count=1,
                evidence={"skew_s": f"{skew:.1f}"},
            )
        )
    return found
