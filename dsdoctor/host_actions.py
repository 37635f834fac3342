"""Adds a note to hints that cannot be followed inside a container.

A container has neither its own kernel nor its own driver, so resets, reboots, modules, services and
the kernel log belong to its host. Checks need not know where they run: one rule covers all packs.
"""

from __future__ import annotations

import re

import msgspec

from dsdoctor.fact_source import Facts
from dsdoctor.host import Host
from dsdoctor.model.facts.base import Fact, Missing
from dsdoctor.model.facts.machine import OsInfo
from dsdoctor.model.finding import Finding
from dsdoctor.model.partial import NotStated
from dsdoctor.probes.machine import container_of

#: Actions that only work on the host.
OF_HOST = re.compile(
    r"\breboot|\bresets? (?:the|all) GPU|`(?:sudo )?(?:modprobe|sysctl|systemctl|setpci|mount)\b"
    r"|`nvidia-smi [^`]*` as root|nvidia-persistenced|\bdmesg\b|kernel command line|\bBIOS\b"
    r"|\bpower (?:the node|it) off\b"
    r"|\b(?:re)?install(?: the)?(?: NVIDIA)? driver|\bupgrade (?:the driver|it) to|timesyncd"
)
#: A hint with one of these words already mentions containers.
MENTIONS_HOST = re.compile(r"\b(?:host|container)\b")
NOTE = "; this is a container: driver and kernel steps must be done on the host"


def for_container(hint: str) -> str:
    """A hint for a reader inside a container.

    >>> for_container("run `nvidia-smi --gpu-reset -i 3` as root, or reboot")[43:]
    'or reboot; this is a container: driver and kernel steps must be done on the host'
    >>> for_container("run `pip install ninja`")
    'run `pip install ninja`'
    """
    return hint + NOTE if OF_HOST.search(hint) and not MENTIONS_HOST.search(hint) else hint


def for_machine(hint: str, host: Host) -> str:
    """A hint for a reader on a machine."""
    found = for_container(hint)
    return found if found != hint and container_of(host) else hint


def is_container(os: Fact | Missing | None) -> bool:
    """Whether a machine was found to be a container."""
    try:
        return isinstance(os, OsInfo) and bool(os.container)
    except NotStated:  # a pasted text may not state it
        return False


def in_container(finding: Finding, facts: Facts) -> Finding:
    """The finding; if this is a container, its hint says what must be done on the host."""
    if not finding.hint or not is_container(facts.get(OsInfo)):
        return finding
    return msgspec.structs.replace(finding, hint=for_container(finding.hint))
