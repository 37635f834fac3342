"""`lscpu`, alone or in the report of another tool: architecture, CPUs, virtual machine or not.

Source: util-linux 2.23 to 2.41, sys-utils/lscpu.c; since 2.37 in indented groups. The list of its
keys is translated; the Chinese one is read too. Read 2026-11-28.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.machine import OsInfo, Resources
from dsdoctor.model.facts.pci import PciTree
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_FIRST = re.compile(r"\s*(?:Architecture|架构):\s+(?P<machine>x86_64|aarch64|ppc64le|riscv64)\s*$")
_KEY = re.compile(r"\s{0,12}(?P<key>[^\s:][^:]{0,60}):\s*(?P<value>\S.{0,1500})?$")
_CPUS = ("CPU(s)", "CPU")
_VIRTUAL = ("Hypervisor vendor", "超管理器厂商")
_LONGEST = 80


def _read(lines: Sequence[Line], into: Statements) -> None:
    for place, line in enumerate(lines):
        first = _FIRST.match(line.text)
        if first:
            own = into.reader
            if place and lines[place - 1].text.strip() == "CPU:":  # collect_env calls lscpu
                into.reader = "collect_env"
            _block(lines[place + 1 : place + _LONGEST], first, line, into)
            into.reader = own


def _block(lines: Sequence[Line], first: re.Match[str], at: Line, into: Statements) -> None:
    """States a list that has at least the number of CPUs; other tools print an architecture too."""
    cpus: tuple[int, Line] | None = None
    virtual: Line | None = None
    for line in lines:
        found = _KEY.match(line.text)
        if found is None:
            break
        key, value = found["key"].strip(), (found["value"] or "").strip()
        if key in _CPUS and value.isdecimal() and len(value) < 6 and cpus is None:  # noqa: PLR2004
            cpus = int(value), line
        elif key in _VIRTUAL and value:
            virtual = line
    if cpus is None:
        return
    into.state(OsInfo, "machine", first["machine"], at)
    into.state(Resources, "cpus_logical", cpus[0], cpus[1])
    if virtual is not None:
        into.state(PciTree, "virtual", value=True, line=virtual)


READER = Reader("lscpu", _read)
