"""`lspci`, with `-nn` and `-k`: NVIDIA's display and 3D controllers and their kernel drivers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.machine import NvidiaKernel
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_GPU = re.compile(
    r"\s*(?P<bus>(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.\d) "
    r"(?:3D controller|VGA compatible controller)"
    r"(?: \[03\d\d\])?: NVIDIA Corporation (?P<rest>.*)$"
)
#: With `-nn`; without it, `Device` and the ID if the machine's list of names is too old.
_ID = re.compile(r"\[10de:(?P<id>[0-9a-f]{4})\]|^Device (?P<bare>[0-9a-f]{4})\b")
_OTHER = re.compile(r"\s*(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.\d ")
#: More than any machine has: the cost of a list grows with its square.
MOST_GPUS = 256
_DRIVER = re.compile(r"\s+Kernel driver in use: (?P<driver>[\w-]{1,30})$")


def _read(lines: Sequence[Line], into: Statements) -> None:
    number = -1
    inside = False
    drivers: dict[int, tuple[str, Line]] = {}
    for line in lines:
        gpu = _GPU.match(line.text)
        driver = _DRIVER.match(line.text)
        if gpu and number == MOST_GPUS:
            break
        if gpu:
            number, inside = number + 1, True
            bus = gpu["bus"] if gpu["bus"].count(":") > 1 else f"0000:{gpu['bus']}"
            into.state(NvidiaKernel, f"pci.{number}.bdf", bus, line)
            code = _ID.search(gpu["rest"])
            if code:
                into.state(
                    NvidiaKernel, f"pci.{number}.device_id", f"0x{code['id'] or code['bare']}", line
                )
        elif inside and driver:
            into.state(NvidiaKernel, f"pci.{number}.driver", driver["driver"], line)
            drivers.setdefault(number, (driver["driver"], line))
        elif _OTHER.match(line.text) or not line.text.strip():
            inside = False
    state_nouveau(list(drivers.values()), number + 1, into)


def state_nouveau(drivers: Sequence[tuple[str, Line]], gpus: int, into: Statements) -> None:
    """States that no GPU uses NVIDIA's module, if nouveau drives all of them."""
    if gpus and len(drivers) == gpus and all(driver == "nouveau" for driver, _ in drivers):
        into.state(NvidiaKernel, "modules", ["nouveau"], drivers[0][1])
        into.state(NvidiaKernel, "module_version", None, drivers[0][1])


READER = Reader("lspci", _read)
