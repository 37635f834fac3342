"""Reads the places of GPUs and RDMA adapters in the PCI tree, from sysfs."""

from __future__ import annotations

import contextlib
import posixpath
import re

from dsdoctor.api import NvidiaKernel, probe
from dsdoctor.host import Host, HostError, read_text
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.pci import PciPlace, PciTree

DEVICES = "/sys/bus/pci/devices"
SYSTEM = "/sys/devices/system"
_BDF = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")

#: PCI Express: extended capabilities begin at 0x100; that of Access Control Services is 0x0D, its
#: control register is at offset 6 (PCI Express base specification 5.0, 7.7.8).
_EXTENDED, _ACS, _CONTROL = 0x100, 0x000D, 6
#: Source validation, peer-to-peer request redirect, completion redirect.
_REDIRECT = 0x0001 | 0x0004 | 0x0008
#: The part of the configuration space that a user other than root can read.
_HEADER = 64


def parse_cpus(text: str) -> tuple[int, ...]:
    r"""Numbers in a list of CPUs.

    >>> parse_cpus("0-2,8\n"), parse_cpus("")
    ((0, 1, 2, 8), ())
    """
    found: list[int] = []
    for part in text.strip().split(","):
        first, dash, last = part.strip().partition("-")
        if first.isdigit():
            found.extend(range(int(first), int(last if dash else first) + 1))
    return tuple(found)


def parse_acs(config: bytes) -> bool | None:
    r"""Whether a bridge redirects transfers between devices; None if that part cannot be read.

    >>> parse_acs(bytes(64)), parse_acs(bytes(4096))
    (None, False)
    >>> parse_acs(bytes(256) + (0x0D).to_bytes(4, "little") + b"\0\0\x1d\0" + bytes(8))
    True
    """
    if len(config) <= _HEADER:
        return None
    at, hops = _EXTENDED, 0
    while _EXTENDED <= at <= len(config) - 8 and hops < len(config) // 4:
        head = int.from_bytes(config[at : at + 4], "little")
        if head & 0xFFFF == _ACS:
            control = int.from_bytes(config[at + _CONTROL : at + _CONTROL + 2], "little")
            return bool(control & _REDIRECT)
        at, hops = head >> 20, hops + 1
    return False


def parse_place(real: str) -> tuple[str, tuple[str, ...]]:
    """Host bridge and bridges of a device, from its real path in sysfs.

    >>> parse_place("/sys/devices/pci0000:17/0000:17:01.0/0000:18:00.0")
    ('pci0000:17', ('0000:17:01.0',))
    """
    parts = real.split("/")
    root = next((part for part in parts if part.startswith("pci")), "")
    chain = tuple(part for part in parts if _BDF.match(part))
    return root, chain[:-1]


def _number(host: Host, path: str) -> int | None:
    try:
        value = int(read_text(host, path))
    except (HostError, ValueError):
        return None
    return value if value >= 0 else None


def _iommu(host: Host, bdf: str) -> str | None:
    group = f"{DEVICES}/{bdf}/iommu_group"
    with contextlib.suppress(HostError):
        return read_text(host, f"{group}/type").strip() or None
    with contextlib.suppress(HostError):
        return "unknown" if host.glob(f"{group}/devices/*") else None
    return None


def _socket(host: Host, node: int | None) -> int | None:
    """The socket of a NUMA node's first CPU: a socket may have several nodes, not vice versa."""
    if node is None:
        return None
    with contextlib.suppress(HostError):
        cpus = parse_cpus(read_text(host, f"{SYSTEM}/node/node{node}/cpulist"))
        if cpus:
            return _number(host, f"{SYSTEM}/cpu/cpu{cpus[0]}/topology/physical_package_id")
    return None


def _place(host: Host, bdf: str, name: str = "") -> PciPlace:
    real = ""
    with contextlib.suppress(HostError):
        real = host.readlink(f"{DEVICES}/{bdf}")
    root, path = parse_place(real)
    node = _number(host, f"{DEVICES}/{bdf}/numa_node")
    return PciPlace(
        bdf=bdf,
        name=name,
        root=root,
        path=path,
        numa_node=node,
        iommu=_iommu(host, bdf),
        socket=_socket(host, node),
    )


def _nics(host: Host) -> tuple[PciPlace, ...]:
    found = []
    for folder in host.glob("/sys/class/infiniband/*"):
        with contextlib.suppress(HostError):
            bdf = posixpath.basename(host.readlink(f"{folder}/device"))
            if _BDF.match(bdf):
                found.append(_place(host, bdf, posixpath.basename(folder)))
    return tuple(found)


def _served(host: Host, driver: str) -> list[str]:
    """Addresses of the devices that a kernel driver serves."""
    try:
        paths = host.glob(f"/sys/bus/pci/drivers/{driver}/*:*:*.*")
    except HostError:  # a recording from before this was read
        return []
    names = [posixpath.basename(path) for path in paths]
    return [name for name in names if _BDF.match(name)]


def _redirecting(host: Host, bridges: set[str]) -> tuple[str, ...] | None:
    found = []
    for bdf in sorted(bridges):
        try:
            answer = parse_acs(host.read(f"{DEVICES}/{bdf}/config"))
        except HostError:
            answer = None
        if answer is None:
            return None
        if answer:
            found.append(bdf)
    return tuple(found)


def _virtual(host: Host) -> bool:
    with contextlib.suppress(HostError):
        text = read_text(host, "/proc/cpuinfo")
        flags = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
        return flags is not None and " hypervisor" in flags[1]
    return False


def _cpus(host: Host) -> tuple[int, ...]:
    with contextlib.suppress(HostError):
        text = read_text(host, "/proc/self/status")
        found = re.search(r"^Cpus_allowed_list:\s*(\S+)", text, re.MULTILINE)
        return parse_cpus(found[1]) if found else ()
    return ()


@probe
def pci_tree(host: Host, kernel: NvidiaKernel) -> PciTree:
    """GPUs and RDMA adapters with the bridges above them; changes nothing."""
    if host.system != "Linux":
        raise HostError(Why.UNSUPPORTED, f"the PCI tree is read from /sys, not on {host.system}")
    gpus = tuple(_place(host, gpu.bdf) for gpu in kernel.pci)
    amd = tuple(_place(host, bdf) for bdf in _served(host, "amdgpu"))
    nics = _nics(host)
    bridges = {bridge for place in (*gpus, *nics) for bridge in place.path}
    return PciTree(
        gpus=gpus,
        amd=amd,
        nics=nics,
        redirecting=_redirecting(host, bridges),
        virtual=_virtual(host),
        cpus=_cpus(host),
    )
