"""`ibstat` and `ibv_devinfo`: the ports of the InfiniBand and RoCE adapters.

Sources: infiniband-diags/ibstat.c and libibverbs/examples/devinfo.c of rdma-core 28 to 55, read
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


def _read(lines: Sequence[Line], into: Statements) -> None:
    ports: list[dict[str, Any]] = []
    first: Line | None = None
    device = ""
    open_ = False
    for line in lines:
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


def _field(port: dict[str, Any], key: str, value: str) -> None:
    if key in ("State", "state"):
        word = value.removeprefix("PORT_").partition(" ")[0].upper()
        port["state"] = {"INITIALIZING": "INIT"}.get(word, word)
    elif key == "Physical state":
        port["phys_state"] = value
    elif key in ("Link layer", "link_layer"):
        port["link_layer"] = value
    elif key == "Rate" and value.isdecimal():
        port["rate_gbps"] = float(value)


READER = Reader("ibstat", _read)
