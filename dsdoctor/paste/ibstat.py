"""`ibstat`, `ibstatus`, `ibv_devinfo` and `rdma link`: ports of InfiniBand and RoCE adapters.

Sources: infiniband-diags/ibstat.c, infiniband-diags/scripts/ibstatus and
libibverbs/examples/devinfo.c of rdma-core 28 to 55; iproute2 5.0 to 6.14, rdma/link.c. Read
2026-11-28.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dsdoctor.model.facts.network import Network
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_ADAPTER = re.compile(r"\s*(?:CA '(?P<ca>\w{1,20})'|hca_id:\s+(?P<hca>\w{1,20}))\s*$")
_PORT = re.compile(r"\s+(?:Port (?P<ca>\d{1,2}):|port:\s+(?P<hca>\d{1,2}))\s*$")
_FIELD = re.compile(r"\s+(?P<key>[A-Za-z][\w ]{1,20}):\s+(?P<value>\S.{0,40}?)\s*$")
_MOST = 64
#: `ibstatus` begins a port in one line, and numbers the states: `state:  4: ACTIVE`.
_STATUS = re.compile(
    r"\s*Infiniband device '(?P<device>\w{1,20})' port (?P<port>\d{1,2}) status:\s*$"
)
_NUMBERED = re.compile(r"\d{1,2}: (?P<word>\S{1,20})$")
#: A line of `rdma link`, with its number before and its subnet after the adapter in some versions.
_LINK = re.compile(
    r"\s*(?:\d{1,3}: |link )?(?P<device>[a-zA-Z]\w{1,19})/(?P<port>\d{1,2})(?::)?\s.{0,120}?"
    r"\bstate (?P<state>[A-Z]{4,8})\b.{0,20}?\bphysical_state (?P<phys>[A-Z_]{3,20})\b"
)
_PHYSICAL = {"LINK_UP": "LinkUp", "POLLING": "Polling", "DISABLED": "Disabled"}


def _read(lines: Sequence[Line], into: Statements) -> None:
    ports: list[dict[str, Any]] = []
    first: Line | None = None
    device = ""
    open_ = False
    for line in lines:
        if link := _LINK.match(line.text):
            if len(ports) < _MOST:
                ports.append(_of_link(link))
            first, device, open_ = first or line, "", False
            continue
        if status := _STATUS.match(line.text):
            if len(ports) < _MOST:
                ports.append({"device": status["device"], "port": int(status["port"])})
                first, device, open_ = first or line, "", True
            continue
        adapter, port = _ADAPTER.match(line.text), _PORT.match(line.text)
        field = _FIELD.match(line.text)
        if adapter:
            device, open_, first = adapter["ca"] or adapter["hca"], False, first or line
        elif port and device and len(ports) < _MOST:
            ports.append({"device": device, "port": int(port["ca"] or port["hca"])})
            open_ = True
        elif field and open_:
            _field(ports[-1], field["key"], field["value"])
        elif line.text.strip() and not field:
            device, open_ = "", False
    if first is not None and ports and all("state" in port for port in ports):
        into.state(Network, "rdma", ports, first)


def _of_link(link: re.Match[str]) -> dict[str, Any]:
    phys = link["phys"]
    return {
        "device": link["device"],
        "port": int(link["port"]),
        "state": link["state"],
        "phys_state": _PHYSICAL.get(phys, phys.title().replace("_", "")),
    }


def _field(port: dict[str, Any], key: str, value: str) -> None:
    numbered = _NUMBERED.match(value)
    if numbered:
        value = numbered["word"]
    if key.lower().endswith("state") and not value[0].isalpha():
        return  # cut after the number
    if key in ("State", "state"):
        word = value.removeprefix("PORT_").partition(" ")[0].upper()
        port["state"] = {"INITIALIZING": "INIT"}.get(word, word)
    elif key in ("Physical state", "phys state"):
        port["phys_state"] = value
    elif key in ("Link layer", "link_layer"):
        port["link_layer"] = value
    elif key in ("Rate", "rate") and (rate := re.match(r"\d{1,5}(?:\.\d)?(?= Gb|$)", value)):
        port["rate_gbps"] = float(rate.group())


READER = Reader("ibstat", _read)
