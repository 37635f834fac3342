"""`lshw -C display`: NVIDIA's GPUs and their kernel drivers, AMD GPUs without one.

Source: lshw B.02.19 and B.02.20, src/core/print.cc: one block for each node, keys indented below
`*-display`, with `UNCLAIMED` if it has no driver.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.machine import NvidiaKernel, OsInfo
from dsdoctor.paste.lines import Line
from dsdoctor.paste.lspci import MOST_GPUS, state_nouveau
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_HEAD = re.compile(r"\s*\*-(?P<kind>[a-z]{3,12})(?::\d{1,3})?(?: [A-Z]{5,12})?\s*$")
_KEY = re.compile(r"\s+(?P<key>[a-z][a-z ]{2,18}): (?P<value>\S.{0,300})$")
_BUS = re.compile(r"pci@(?P<bus>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)$")
_DRIVER = re.compile(r"(?:^| )driver=(?P<driver>[\w-]{1,30})")
#: Lines of the longest block.
_MOST = 20


def _read(lines: Sequence[Line], into: Statements) -> None:
    count = 0
    amd: list[tuple[bool, Line]] = []
    drivers: list[tuple[str, Line]] = []
    for place, line in enumerate(lines):
        head = _HEAD.match(line.text)
        if head is None or head["kind"] != "display" or count > MOST_GPUS:
            continue
        keys = _block(lines, place)
        vendor, bus = keys.get("vendor"), keys.get("bus info")
        found = _BUS.match(bus[0]) if bus else None
        if vendor is not None and "AMD/ATI" in vendor[0]:
            amd.append((" UNCLAIMED" in line.text, line))
        if vendor is None or "NVIDIA" not in vendor[0] or bus is None or found is None:
            continue
        into.state(NvidiaKernel, f"pci.{count}.bdf", found["bus"], bus[1])
        told = keys.get("configuration")
        driver = _DRIVER.search(told[0]) if told else None
        if told and driver:
            into.state(NvidiaKernel, f"pci.{count}.driver", driver["driver"], told[1])
            drivers.append((driver["driver"], told[1]))
        count += 1
    state_nouveau(drivers, count, into)
    if amd and all(unclaimed for unclaimed, _ in amd):  # `amdgpu` serves none of them
        into.state(OsInfo, "amd_gpus", 0, amd[0][1])


def _block(lines: Sequence[Line], place: int) -> dict[str, tuple[str, Line]]:
    """The keys below a head, with their lines."""
    keys: dict[str, tuple[str, Line]] = {}
    for line in lines[place + 1 : place + 1 + _MOST]:
        found = None if line.fence or _HEAD.match(line.text) else _KEY.match(line.text)
        if found is None:
            break
        keys.setdefault(found["key"], (found["value"].strip(), line))
    return keys


READER = Reader("lshw", _read)
