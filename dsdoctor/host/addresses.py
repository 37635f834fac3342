"""IP addresses of the interfaces, queried from the kernel (rtnetlink(7)).

psutil knows them too, but importing it takes a tenth of `check --quick`: it creates some seventy
named tuples. It is still used on other systems, and if a sandbox refuses netlink.
"""

from __future__ import annotations

import re
import socket
import struct
import sys
from collections.abc import Iterator

# linux/netlink.h, linux/rtnetlink.h, linux/if_addr.h
_DONE, _ERROR, _GETADDR, _NEWADDR = 3, 2, 22, 20
_REQUEST_DUMP = 0x301
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
#: length, type, flags, sequence number, port of a message.
_HEAD = struct.Struct("=IHHII")
#: family, length of the prefix, flags, scope, number of the interface.
_ADDRESS = struct.Struct("=BBBBI")
#: length and type of an attribute.
_ATTRIBUTE = struct.Struct("=HH")
_RECEIVED_BYTES = 1 << 16
#: The kernel answers at once; a sandbox might not.
_SECONDS = 1.0


def by_interface() -> dict[str, list[str]]:
    """The IPv4 and IPv6 addresses of each interface that has any.

    Raises:
        OSError: the kernel does not report them.
    """
    if sys.platform == "linux":
        try:
            return _from_netlink()
        except (OSError, ValueError, struct.error):
            pass  # a sandbox without netlink, or one that answers differently from Linux
    return _of_psutil()


def _of_psutil() -> dict[str, list[str]]:
    import psutil  # noqa: PLC0415  # costs 35 ms

    wanted = (socket.AF_INET, socket.AF_INET6)
    return {
        name: [row.address for row in rows if row.family in wanted]
        for name, rows in psutil.net_if_addrs().items()
    }


def _from_netlink() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    names = dict(socket.if_nameindex())
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.settimeout(_SECONDS)
        kernel.bind((0, 0))
        ask = _ADDRESS.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
        kernel.send(_HEAD.pack(_HEAD.size + len(ask), _GETADDR, _REQUEST_DUMP, 1, 0) + ask)
        for data in _messages(kernel):
            number, address = parse(data)
            if address and number in names:
                found.setdefault(names[number], []).append(_zoned(address, names[number]))
    return found


def _messages(kernel: socket.socket) -> Iterator[bytes]:
    """The body of each answer, up to the last one."""
    while True:
        data, (sender, _groups) = kernel.recvfrom(_RECEIVED_BYTES)
        if sender:  # another process, not the kernel
            continue
        at = 0
        while at < len(data):
            length, kind, _flags, _sequence, _port = _HEAD.unpack_from(data, at)
            if kind == _DONE:
                return
            if kind == _ERROR or length < _HEAD.size:
                raise OSError("the kernel refused RTM_GETADDR")
            if kind == _NEWADDR:
                yield data[at + _HEAD.size : at + length]
            at += length + 3 & ~3


def parse(data: bytes) -> tuple[int, str]:
    """Number of the interface and its address, "" for a family that is not IP.

    `IFA_LOCAL` is the own address of a point-to-point link, whose `IFA_ADDRESS` is the peer's.

    Raises:
        ValueError, struct.error: it is not an address message.
    """
    family, _bits, _flags, _scope, number = _ADDRESS.unpack_from(data)
    if family not in (socket.AF_INET, socket.AF_INET6):
        return number, ""
    found: dict[int, str] = {}
    at = _ADDRESS.size
    while at < len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size:
            raise ValueError("an attribute without a length")
        if kind in (_IFA_ADDRESS, _IFA_LOCAL):
            found[kind] = socket.inet_ntop(family, data[at + _ATTRIBUTE.size : at + length])
        at += length + 3 & ~3
    return number, found.get(_IFA_LOCAL) or found.get(_IFA_ADDRESS, "")


def _zoned(address: str, interface: str) -> str:
    """A link-local IPv6 address with its zone (RFC 4007), as getaddrinfo(3) takes it."""
    if re.match(r"fe[89ab][0-9a-f]:", address):
        return f"{address}%{interface}"
    return address
