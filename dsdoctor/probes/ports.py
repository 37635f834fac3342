"""Whether the master address resolves and its port is free, from the kernel's list of sockets."""

from __future__ import annotations

import posixpath
import re

from dsdoctor.api import probe
from dsdoctor.host import Host, HostError, read_text
from dsdoctor.model.facts.base import Missing, Why
from dsdoctor.model.facts.launch import LaunchCommand, MasterAddress, MasterPort
from dsdoctor.model.facts.machine import OsInfo
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.units import whole
from dsdoctor.probes.command_line import command_of
from dsdoctor.probes.nodes import resolve

#: deepspeed/launcher/runner.py (0.19.8), torch.distributed.run
DEFAULT_PORT = 29500
#: What torchrun tells its ranks: it serves the store itself, at the master port
#: (torch 2.13.0 distributed/rendezvous.py, elastic/agent/server).
AGENT_STORE = "TORCHELASTIC_USE_AGENT_STORE"

#: Time limit of a connection attempt to another node.
CONNECT_SECONDS = 3.0


def _listening(table: str) -> dict[int, list[tuple[str, str]]]:
    """Listening ports, with the hex address and inode of each socket."""
    found: dict[int, list[tuple[str, str]]] = {}
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) < 10 or fields[3] != "0A":  # noqa: PLR2004  # LISTEN
            continue
        address, _, port = fields[1].rpartition(":")
        found.setdefault(int(port, 16), []).append((address, fields[9]))
    return found


def _holder(host: Host, inodes: set[str]) -> str | None:
    wanted = {f"socket:[{inode}]" for inode in inodes}
    try:
        handles = host.glob("/proc/[0-9]*/fd/[0-9]*")
    except HostError:
        return None
    for handle in handles:
        try:
            target = host.readlink(handle)
        except HostError:
            continue
        if posixpath.basename(target) in wanted:
            process = handle.split("/")[2]
            try:
                name = read_text(host, f"/proc/{process}/comm").strip()
            except HostError:
                name = "process"
            return f"{name} (pid {process})"
    return None


def _addresses(host: Host) -> set[str]:
    """IPv4 addresses of this node."""
    try:
        table = read_text(host, "/proc/net/fib_trie")
    except HostError:
        return set()
    return set(re.findall(r"\|-- (\S+)\s+/32 host LOCAL", table))


def _is_local(host: Host, name: str) -> bool:
    if name in {"", "localhost", "0.0.0.0", "::1"} or name.startswith("127."):  # noqa: S104  # compared
        return True
    if name in _addresses(host):
        return True
    try:
        own = read_text(host, "/proc/sys/kernel/hostname").strip()
    except HostError:
        return False
    return name.partition(".")[0] == own.partition(".")[0]


def _answers(host: Host, address: str, port: int) -> bool:
    """Whether a process listens on a port of another node; HostError if that is unknown."""
    reason = host.connect(address, port, CONNECT_SECONDS)
    if reason is None or "refused" in reason.lower():
        return reason is None
    raise HostError(
        Why.UNSUPPORTED, f"whether port {port} of `{address}` is free is unknown ({reason})"
    )


#: Composer takes `MASTER_ADDR` of the environment.
_SET_ADDRESS = frozenset({"deepspeed", "torchrun", "accelerate", "colossalai"})


def sets_address(command: LaunchCommand | None) -> bool:
    """Whether the launcher sets the address of the ranks itself, whatever the variables are."""
    return command is not None and (command.inner or command.launcher) in _SET_ADDRESS


@probe
def master_address(host: Host, run: RunNeeds) -> MasterAddress:
    """What the master address of the run resolves to on this node."""
    command = command_of(run)
    address = (command.master_addr if command else None) or ""
    if not address and not sets_address(command):
        address = (dict(host.env) | (command.env if command else {})).get("MASTER_ADDR", "")
    if not address or "$" in address:
        raise HostError(Why.NOT_ASKED, "no master address was passed")
    if run.quick:
        raise HostError(Why.NOT_ASKED, "the master address was not resolved (`--quick`)")
    try:
        addresses = resolve(host, address.strip("[]"))
    except HostError:
        if address != "localhost":
            raise
        addresses = ("127.0.0.1",)  # RFC 6761, whether or not `getent` is there
    return MasterAddress(host=address, addresses=addresses)


@probe
def master_port(host: Host, run: RunNeeds, system: OsInfo | Missing) -> MasterPort:
    """Whether the master port is free, from the kernel's list of sockets; binds nothing."""
    is_root = isinstance(system, Missing) or system.is_root  # in doubt, it may open any port
    command = command_of(run)
    variables: dict[str, str] = dict(host.env) | (command.env if command else {})
    address = (command.master_addr if command else None) or ""
    port = command.master_port if command else None
    asked = port is not None
    if not sets_address(command):
        address = address or variables.get("MASTER_ADDR", "")
        text = variables.get("MASTER_PORT", "")
        if port is None and whole(text) is not None:
            port, asked = whole(text), True
    if command is not None and "standalone" in command.options:
        raise HostError(Why.NOT_ASKED, "torchrun --standalone chooses a free port itself")
    if command is None and variables.get(AGENT_STORE) == "True":
        raise HostError(Why.NOT_ASKED, "torchrun has opened the master port for this run's ranks")
    if port == 0:
        raise HostError(Why.NOT_ASKED, "with port 0, the launcher chooses a free port itself")
    rank = (
        command.options.get("node_rank", command.options.get("machine_rank")) if command else None
    )
    if rank not in {None, "0", "-1"}:
        raise HostError(Why.NOT_ASKED, f"the master port is node 0's, and this is node {rank}")
    port = DEFAULT_PORT if port is None else port
    if not _is_local(host, address):
        taken = _answers(host, address, port)
        return MasterPort(host=address, port=port, asked=asked, taken=taken, remote=True)
    sockets = _tables(host).get(port, [])
    holder = _holder(host, {inode for _, inode in sockets}) if sockets else None
    return MasterPort(
        host=address,
        port=port,
        asked=asked,
        taken=bool(sockets),
        holder=holder,
        reserved=port < _first_open_port(host) and not is_root,
    )


def _first_open_port(host: Host) -> int:
    """The lowest port that every account may open; containers often have it at 0."""
    try:
        return whole(read_text(host, "/proc/sys/net/ipv4/ip_unprivileged_port_start").strip()) or 0
    except HostError:
        return 0


def _tables(host: Host) -> dict[int, list[tuple[str, str]]]:
    if host.system != "Linux":
        raise HostError(Why.UNSUPPORTED, "ports are read from /proc, which only Linux has")
    found = _listening(read_text(host, "/proc/net/tcp"))
    try:
        more = _listening(read_text(host, "/proc/net/tcp6"))
    except HostError:
        more = {}
    for port, sockets in more.items():
        found.setdefault(port, []).extend(sockets)
    return found


def listening_ports(host: Host) -> frozenset[int]:
    """TCP ports on which a process of this node listens, on any address.

    Raises:
        HostError: the kernel's table cannot be read, or this is not Linux.
    """
    return frozenset(_tables(host))
