"""Facts about the network: interfaces, RDMA ports, the files that NCCL reads, the other nodes."""

from __future__ import annotations

import msgspec

from dsdoctor.model.facts.base import Fact


class NetInterface(msgspec.Struct, frozen=True, kw_only=True):
    """A network interface of this node.

    Attributes:
        name: `eth0`.
        up: it is switched on.
        loopback: it leads nowhere but to this node.
        addresses: its IPv4 and IPv6 addresses; None = not told.
    """

    name: str
    up: bool = True
    loopback: bool = False
    addresses: tuple[str, ...] | None = None


class RdmaPort(msgspec.Struct, frozen=True, kw_only=True):
    """A port of an InfiniBand or RoCE adapter, by /sys/class/infiniband.

    Attributes:
        device: `mlx5_0`.
        port: number, from 1.
        state: `ACTIVE`, `INIT`, `ARMED` or `DOWN`.
        phys_state: `LinkUp`, `Polling`, `Disabled`, …
        link_layer: `InfiniBand` or `Ethernet` (RoCE).
        rate_gbps: speed of the link.
        kind: the adapter's type (`MT4129`); ports of one kind can be compared.
    """

    device: str
    port: int
    state: str = ""
    phys_state: str = ""
    link_layer: str = ""
    rate_gbps: float | None = None
    kind: str | None = None

    @property
    def active(self) -> bool:
        """Whether data can flow."""
        return self.state == "ACTIVE"


class Network(Fact, frozen=True, kw_only=True):
    """Interfaces and RDMA ports of this node.

    Attributes:
        interfaces: as getifaddrs lists them.
        rdma: every port of every adapter; empty = there is none.
    """

    interfaces: tuple[NetInterface, ...] = ()
    rdma: tuple[RdmaPort, ...] = ()


class NcclSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A line `NAME=VALUE` of a file that NCCL reads.

    Attributes:
        name: what stands before the first `=`, blanks included, as NCCL takes it.
        value: what stands behind, secrets masked.
        line: line number, from 1.
    """

    name: str
    value: str
    line: int


class NcclFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of NCCL settings.

    Attributes:
        path: where it is.
        settings: its lines, in order.
        ignored: numbers of lines that NCCL passes over (no `=`), remarks and blank lines apart.
    """

    path: str
    settings: tuple[NcclSetting, ...] = ()
    ignored: tuple[int, ...] = ()


class NcclFiles(Fact, frozen=True, kw_only=True):
    """The files from which NCCL takes variables that the environment does not set.

    Attributes:
        files: those that exist, strongest first.
        named: NCCL_CONF_FILE, None when it is not set.
        named_exists: the file that it names is there.
        home_hidden: a `~/.nccl.conf` that NCCL does not read because NCCL_CONF_FILE is set.
    """

    files: tuple[NcclFile, ...] = ()
    named: str | None = None
    named_exists: bool = True
    home_hidden: str | None = None


class NodeReach(msgspec.Struct, frozen=True, kw_only=True):
    """How this node reaches another one.

    Attributes:
        host: its name in the hostfile.
        addresses: what the name resolves to; empty = it does not.
        local: it is this node.
        ssh: a log-in without a password went well; None = not tried.
        error: what ssh, or the resolver, said.
        timed_out: ssh had not ended at its deadline.
        skew_s: that node's clock less this one's, in seconds, to about a round trip; None = not
            known.
        python: the patient's interpreter exists there at the same path; None = not known.
    """

    host: str
    addresses: tuple[str, ...] = ()
    local: bool = False
    ssh: bool | None = None
    error: str | None = None
    timed_out: bool = False
    skew_s: float | None = None
    python: bool | None = None


class NodesReach(Fact, frozen=True, kw_only=True):
    """The nodes of the hostfile, as this node sees them.

    Attributes:
        nodes: one for each host that was tried.
        untried: how many hosts were left out, because there are too many.
        lacking: of `ssh` and `pdsh`, what this node has not got.
    """

    nodes: tuple[NodeReach, ...] = ()
    untried: int = 0
    lacking: tuple[str, ...] = ()
