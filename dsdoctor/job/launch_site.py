"""Where the job will start: names of the nodes, a free port, the environment's launchers."""

from __future__ import annotations

import os
import posixpath
import re

from dsdoctor import interpreter
from dsdoctor.errors import UsageError
from dsdoctor.host import Host, HostError, exists, read_text
from dsdoctor.hostfile import hosts_of
from dsdoctor.probes.ports import DEFAULT_PORT, listening_ports
from dsdoctor.recommend.options import LAUNCHERS

#: How many ports are tried, from the default on; a machine runs fewer jobs than that.
PORTS = 64
#: A connection to this machine is accepted at once or not at all.
CONNECT_SECONDS = 0.5
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def host_names(
    host: Host, names: str | None, hostfile: str | None, nodes: int | None
) -> tuple[str, ...]:
    """The nodes that `--hosts` or `--hostfile` lists; empty if neither was passed.

    Raises:
        UsageError: both were passed, the file cannot be read, or `--nodes` is another number.
    """
    if names is not None and hostfile is not None:
        raise UsageError("`--hosts` and `--hostfile` are mutually exclusive; pass one of them")
    if names is not None:
        found = tuple(name.strip() for name in names.split(",") if name.strip())
        option = "--hosts"
    elif hostfile is not None:
        try:
            text = read_text(host, hostfile)
        except HostError as error:
            raise UsageError(
                f"`--hostfile {hostfile}` cannot be read: {error.missing.detail}; "
                "expected lines such as `gpu-1 slots=8`"
            ) from None
        found, option = tuple(hosts_of(text, hostfile)), "--hostfile"
    else:
        return ()
    for name in found:
        if not _HOST.fullmatch(name):
            raise UsageError(
                f"`{option}` contains `{name}`, which is not a host name; "
                "expected, for example, `node-a`"
            )
    if not found:
        raise UsageError(f"`{option}` lists no host; expected names such as `node-a`")
    if nodes is not None and len(found) != nodes:
        raise UsageError(
            f"`{option}` lists {len(found)} hosts for `--nodes {nodes}`; make the two agree"
        )
    return found


def _is_port_taken(host: Host, port: int) -> bool:
    try:
        return port in listening_ports(host)
    except HostError:  # without /proc, a port is taken if a connection to it is accepted
        return host.connect("127.0.0.1", port, CONNECT_SECONDS) is None


def port(
    host: Host, asked: int | None, nodes: tuple[str, ...], *, look: bool
) -> tuple[int, tuple[str, ...]]:
    """The master port: the first from 29500 on that no process on this host listens on.

    Args:
        host: this machine.
        asked: value of `--master-port`.
        nodes: names of the nodes; ports of another master cannot be read.
        look: False = the plan is for another machine.

    Returns:
        The port, and notes for the reader.
    """
    first = DEFAULT_PORT if asked is None else asked
    if not look:
        return first, ()
    if asked is not None:
        if not _is_port_taken(host, asked):
            return asked, ()
        return asked, (f"port {asked}, which was requested, is now in use on this host",)
    last = min(first + PORTS, 65536)
    free = next((number for number in range(first, last) if not _is_port_taken(host, number)), None)
    if free is None:
        return first, (f"ports {first} to {last - 1} are all in use on this host; set MASTER_PORT",)
    if free == first:
        return first, ()
    where = "this host" if not nodes else "this host (the master host was not checked)"
    return free, (f"port {first} is in use on {where}, so {free} is used",)


def programs(
    host: Host, python: str | None, launcher: str, *, look: bool
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Launchers of the environment that will train, if PATH finds others or none.

    Args:
        host: this machine.
        python: value of `--python`.
        launcher: the one that the plan uses.
        look: False = the plan is for another machine.

    Returns:
        Pairs of name and path, and notes for the reader.

    Raises:
        UsageError: `--python` is not an interpreter.
    """
    if not look:
        return (), ()
    try:
        chosen = interpreter.choose(host, python)
    except UsageError:
        if python is not None:
            raise
        return (), (f"no Python was found, so `{launcher}` is assumed to be your environment's",)
    folder = posixpath.dirname(chosen.executable)
    if host.system == "Windows" or not os.path.isabs(chosen.executable):  # noqa: PTH117
        return (), ()
    found = []
    for name in LAUNCHERS:
        path = posixpath.join(folder, name)
        if exists(host, path) and _resolved(host, host.which(name)) != _resolved(host, path):
            found.append((name, path))
    if not exists(host, posixpath.join(folder, launcher)):
        return tuple(found), (f"`{launcher}` is not installed next to {chosen.executable}",)
    return tuple(found), ()


def release_of(host: Host, python: str | None, package: str, *, look: bool) -> str | None:
    """The release of a package in the environment that will train; None = not known.

    Args:
        host: this machine.
        python: value of `--python`.
        package: its name.
        look: False = the plan is for another machine.
    """
    if not look:
        return None
    try:
        chosen = interpreter.choose(host, python)
    except UsageError:
        return None  # `programs` reports it
    return interpreter.release_of(host, chosen.executable, package)


def _resolved(host: Host, path: str | None) -> str | None:
    if path is None:
        return None
    try:
        return host.readlink(path)
    except HostError:
        return path
