"""`free` in any of its units, in English and Chinese: how much memory and swap the machine has.

What is in use is not read: the text does not say whether the job was running. Source: procps 3.2
to 4.0, src/free.c (`-h`, `-b`, `-k`, `-m`, `-g`), read 2026-11-28.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.machine import Resources
from dsdoctor.model.units import BINARY
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_HEAD = re.compile(
    r"\s*(?:total\s+used\s+free\s+shared\s+(?:buff/cache\s+available|buffers\s+cached)"
    r"|(?:总计|total)\s+已用\s+空闲\s+共享\s+缓冲/缓存\s+可用)\s*$"
)
_ROW = re.compile(
    r"\s*(?P<name>Mem|Swap|内存|交换):\s+(?P<number>\d{1,15}(?:\.\d{1,2})?)(?P<unit>[BKMGTP]?)i?B?\s+\d"
)
_ASKED = re.compile(r"(?:^|[$#%>❯]\s*)free\s+-(?:\w*(?P<unit>[bkmg])\w*|-(?P<long>\w{4,5}))\s*$")
_LONG = {"bytes": 1, "kibi": 1 << 10, "mebi": 1 << 20, "gibi": 1 << 30}
#: A number without a unit and without the command is in KiB, as `free` prints it, if it is so large
#: that no machine has as many MiB: 4 TiB.
_SURELY_KIB = 4 << 20
_FIELDS = {"Mem": "memory_total_bytes", "Swap": "swap_total_bytes"}
_CHINESE = {"内存": "Mem", "交换": "Swap"}
_ROWS = 3


def _read(lines: Sequence[Line], into: Statements) -> None:
    for place, line in enumerate(lines):
        if _HEAD.match(line.text):
            asked = _ASKED.search(lines[place - 1].text.rstrip()) if place else None
            unit = _unit(asked) if asked else None
            _table(lines[place + 1 : place + 1 + _ROWS], unit, into)


def _unit(asked: re.Match[str]) -> int | None:
    return BINARY.get(asked["unit"] or "") or _LONG.get(asked["long"] or "")


def _table(rows: Sequence[Line], unit: int | None, into: Statements) -> None:
    for line in rows:
        row = _ROW.match(line.text)
        if row is None:
            if line.text.lstrip().startswith("-/+"):  # of old releases, between the two
                continue
            return
        number, own = float(row["number"]), BINARY.get(row["unit"].lower()) if row["unit"] else unit
        name = _CHINESE.get(row["name"], row["name"])
        if own is None:
            if name == "Mem" and number < _SURELY_KIB:
                return
            own = unit = 1 << 10
        into.state(Resources, _FIELDS[name], int(number * own), line)


READER = Reader("free", _read)
