"""Reads network interfaces, RDMA ports and NCCL's configuration files."""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

from dsdoctor.api import probe
from dsdoctor.host import Host, HostError, exists, read_text
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.network import (
    GIDS_READ,
    Gid,
    NcclFile,
    NcclFiles,
    NcclSetting,
    NetInterface,
    Network,
    RdmaPort,
)
from dsdoctor.model.redact import mask

RDMA = "/sys/class/infiniband"
_EMPTY_GID = re.compile(r"(?:(?:fe80:)?(?:0000:?)+)?")
#: IFF_UP and IFF_LOOPBACK of linux/if.h.
_UP, _LOOPBACK = 0x1, 0x8
SYSTEM_FILE = "/etc/nccl.conf"


def parse_state(text: str) -> str:
    r"""The word in a state file of an RDMA port.

    >>> parse_state("4: ACTIVE\n"), parse_state("5: LinkUp"), parse_state("")
    ('ACTIVE', 'LinkUp', '')
    """
    return text.partition(":")[2].strip() or text.strip()


def parse_rate(text: str) -> float | None:
    r"""Gb/s in the rate file of an RDMA port.

    >>> parse_rate("400 Gb/sec (4X NDR)\n"), parse_rate("2.5 Gb/sec (1X SDR)"), parse_rate("?")
    (400.0, 2.5, None)
    """
    found = re.match(r"\s*(\d+(?:\.\d+)?) Gb/sec", text)
    return float(found[1]) if found else None


def parse_settings(text: str, path: str) -> NcclFile:
    r"""Reads a file as NCCL does (src/misc/param.cc of 2.30.7).

    A line that begins with `#` is a comment; any other is split at its first `=`, and no space is
    removed.

    >>> file = parse_settings("# ours\nNCCL_DEBUG=INFO\nNCCL_ALGO = Ring\nRing\n\n", "f")
    >>> [(s.name, s.value, s.line) for s in file.settings], file.ignored
    ([('NCCL_DEBUG', 'INFO', 2), ('NCCL_ALGO ', ' Ring', 3)], (4,))
    """
    settings: list[NcclSetting] = []
    ignored: list[int] = []
    for number, line in enumerate(text.split("\n"), 1):
        name, equals, value = line.partition("=")
        if line.startswith("#") or not line.strip():
            continue
        if not equals:
            ignored.append(number)
            continue
        settings.append(NcclSetting(name=name, value=mask(value), line=number))
    return NcclFile(path=path, settings=tuple(settings), ignored=tuple(ignored))


def _text(host: Host, path: str) -> str:
    try:
        return read_text(host, path).strip()
    except HostError:
        return ""


def _interfaces(host: Host) -> Iterator[NetInterface]:
    addresses: Mapping[str, Any] | None = None
    with contextlib.suppress(HostError):
        addresses = host.query("addresses")
    for name in host.listdir("/sys/class/net"):
        flags = _text(host, f"/sys/class/net/{name}/flags")
        bits = int(flags, 16) if re.fullmatch(r"0x[0-9a-fA-F]+", flags) else _UP
        yield NetInterface(
            name=name,
            up=bool(bits & _UP),
            loopback=bool(bits & _LOOPBACK),
            addresses=None if addresses is None else tuple(addresses.get(name, ())),
        )


def _gids(host: Host, folder: str) -> Iterator[Gid]:
    for index in range(GIDS_READ):
        address = _text(host, f"{folder}/gids/{index}")
        if not _EMPTY_GID.fullmatch(address):  # reading the type of an empty one is an error
            kind = _text(host, f"{folder}/gid_attrs/types/{index}")
            yield Gid(index=index, address=address, kind=kind)


def _driver(host: Host, device: str) -> str | None:
    try:
        target = host.readlink(f"{RDMA}/{device}/device/driver")
    except HostError:
        return None
    return None if target.endswith("/driver") else posixpath.basename(target)


def _verbs(host: Host) -> tuple[str, ...] | None:
    try:
        return tuple(posixpath.basename(path) for path in host.glob("/dev/infiniband/uverbs*"))
    except HostError:
        return None


def _ports(host: Host) -> Iterator[RdmaPort]:
    for folder in host.glob(f"{RDMA}/*/ports/*"):
        device, _, port = folder.removeprefix(f"{RDMA}/").split("/")
        link_layer = _text(host, f"{folder}/link_layer")
        yield RdmaPort(
            device=device,
            port=int(port) if port.isdigit() else 0,
            state=parse_state(_text(host, f"{folder}/state")),
            phys_state=parse_state(_text(host, f"{folder}/phys_state")),
            link_layer=link_layer,
            rate_gbps=parse_rate(_text(host, f"{folder}/rate")),
            kind=_text(host, f"{RDMA}/{device}/hca_type") or None,
            driver=_driver(host, device),
            gids=tuple(_gids(host, folder)) if link_layer == "Ethernet" else None,
        )


@probe
def network(host: Host) -> Network:
    """Interfaces and RDMA ports, from sysfs; sends nothing."""
    if host.system != "Linux":
        raise HostError(Why.UNSUPPORTED, f"interfaces are read from /sys, not on {host.system}")
    return Network(
        interfaces=tuple(_interfaces(host)), rdma=tuple(_ports(host)), verbs=_verbs(host)
    )


def _home(host: Host) -> str | None:
    with contextlib.suppress(HostError):
        return str(host.query("home"))
    return host.env.get("HOME")


@probe
def nccl_files(host: Host) -> NcclFiles:
    """NCCL_CONF_FILE, or else ~/.nccl.conf; then /etc/nccl.conf."""
    if host.system == "Windows":
        raise HostError(Why.UNSUPPORTED, "there is no NCCL for Windows in torch")
    named = host.env.get("NCCL_CONF_FILE") or None
    home = _home(host)
    own = posixpath.join(home, ".nccl.conf") if home else None
    there = [path for path in (named or own, SYSTEM_FILE) if path and exists(host, path)]
    return NcclFiles(
        files=tuple(parse_settings(read_text(host, path), path) for path in there),
        named=named,
        named_exists=named is None or exists(host, named),
        home_hidden=own if named and own and own != named and exists(host, own) else None,
    )
