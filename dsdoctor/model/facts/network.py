"""Facts about the network: interfaces, RDMA ports, the files that NCCL reads, the other nodes."""

from __future__ import annotations

import msgspec

from dsdoctor.model.facts.base import Fact


class NetInterface(msgspec.Struct, frozen=True, kw_only=True):
    """A network interface of this node.

    Attributes:
        name: `eth0`.
        up: the interface is up.
        loopback: it is a loopback interface.
        addresses: its IPv4 and IPv6 addresses; None = unknown.
    """

    name: str
    up: bool = True
    loopback: bool = False
    addresses: tuple[str, ...] | None = None


#: How much of a GID table is read: four entries for each of four addresses.
GIDS_READ = 16


class Gid(msgspec.Struct, frozen=True, kw_only=True):
    """An address of a RoCE port, from its GID table.

    Attributes:
        index: place in the table, as NCCL_IB_GID_INDEX takes it.
        address: an IPv6 address, as eight groups of four digits; one of IPv4 is mapped to it.
        kind: `RoCE v2`, or `IB/RoCE v1`.
    """

    index: int
    address: str
    kind: str = ""

    @property
    def link_local(self) -> bool:
        """Whether routers do not forward to it."""
        return self.address.startswith("fe80:")


class RdmaPort(msgspec.Struct, frozen=True, kw_only=True):
    """A port of an InfiniBand or RoCE adapter, from /sys/class/infiniband.

    Attributes:
        device: `mlx5_0`.
        port: number, from 1.
        state: `ACTIVE`, `INIT`, `ARMED` or `DOWN`.
        phys_state: `LinkUp`, `Polling`, `Disabled`, …
        link_layer: `InfiniBand` or `Ethernet` (RoCE).
        rate_gbps: link rate in Gb/s.
        kind: the adapter's type (`MT4129`); ports of one kind can be compared.
        driver: kernel driver of the adapter: `mlx5_core`, `efa`, …
        gids: of a RoCE port, the entries of its GID table that are not empty, from the first
            GIDS_READ; None = not read.
    """

    device: str
    port: int
    state: str = ""
    phys_state: str = ""
    link_layer: str = ""
    rate_gbps: float | None = None
    kind: str | None = None
    driver: str | None = None
    gids: tuple[Gid, ...] | None = None

    @property
    def active(self) -> bool:
        """Whether the port can carry traffic."""
        return self.state == "ACTIVE"

    def gid(self, index: int) -> Gid | None:
        """An entry of the GID table; None if it is empty or was not read."""
        return next((gid for gid in self.gids or () if gid.index == index), None)

    def lacks_gid(self, index: int) -> bool:
        """Whether an entry of the GID table is known to be empty."""
        return self.gids is not None and index < GIDS_READ and self.gid(index) is None


class Network(Fact, frozen=True, kw_only=True):
    """Interfaces and RDMA ports of this node.

    Attributes:
        interfaces: as getifaddrs lists them.
        rdma: every port of every adapter; empty = no adapter.
        verbs: device nodes in /dev/infiniband through which programs use adapters (`uverbs0`); None
            = not read.
    """

    interfaces: tuple[NetInterface, ...] = ()
    rdma: tuple[RdmaPort, ...] = ()
    verbs: tuple[str, ...] | None = None


class NcclPlugins(Fact, frozen=True, kw_only=True):
    """NCCL's network plugins: libraries that it loads to use networks which it does not know.

    Attributes:
        libraries: paths of `libnccl-net*.so` (`librccl-net*.so` with ROCm) on LD_LIBRARY_PATH, in
            folders of the loader's configuration, and beside NCCL.
    """

    libraries: tuple[str, ...] = ()


class NcclSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A line `NAME=VALUE` of a file that NCCL reads.

    Attributes:
        name: the text before the first `=`, including blanks, as NCCL reads it.
        value: the text after it, secrets masked.
        line: line number, from 1.
    """

    name: str
    value: str
    line: int


class NcclFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of NCCL settings.

    Attributes:
        path: path of the file.
        settings: its lines, in order.
        ignored: numbers of the lines that NCCL skips (no `=`), other than comments and blank lines.
    """

    path: str
    settings: tuple[NcclSetting, ...] = ()
    ignored: tuple[int, ...] = ()


class NcclFiles(Fact, frozen=True, kw_only=True):
    """The files from which NCCL reads variables that the environment does not set.

    Attributes:
        files: those that exist, highest precedence first.
        named: value of NCCL_CONF_FILE; None if it is not set.
        named_exists: that file exists.
        home_hidden: a `~/.nccl.conf` that NCCL does not read because NCCL_CONF_FILE is set.
    """

    files: tuple[NcclFile, ...] = ()
    named: str | None = None
    named_exists: bool = True
    home_hidden: str | None = None


class NodeReach(msgspec.Struct, frozen=True, kw_only=True):
    """How this node reaches another node.

    Attributes:
        host: its name in the hostfile.
        addresses: addresses that the name resolves to; empty = it does not resolve.
        local: it is this node.
        ssh: a login without a password succeeded; None = not tried. To this node it is tried where
            the deepspeed launcher does so: if it is the first host.
        error: message of ssh or of the resolver.
        timed_out: ssh did not finish before its deadline.
        skew_s: that node's clock minus this node's, in seconds, as far as it is certain: 0 = it
            answered with a time between question and answer; None = unknown.
        python: the environment's interpreter exists there at the same path; None = unknown.
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
        untried: number of hosts left out because there are too many.
        lacking: programs that the deepspeed launcher may start other nodes with and that are not on
            this node's PATH (`ssh`, `pdsh`, `mpirun`, …).
    """

    nodes: tuple[NodeReach, ...] = ()
    untried: int = 0
    lacking: tuple[str, ...] = ()
