"""`rocm-smi` and `amd-smi`: how many AMD GPUs the kernel offers.

Sources: the tables of rocm-smi 4.5 to 7 (`Concise Info`) and of amd-smi 25 and 26, in public
reports, read 2026-11-28.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.machine import OsInfo
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_CONCISE = re.compile(r"\s*=+ Concise (?:Info|Hardware Info) =+\s*$")
_END = re.compile(r"\s*=+ End of ROCm SMI Log =+\s*$")
#: A GPU has its number first, a temperature or an id after it.
_ROW = re.compile(r"\s*(?P<index>\d{1,3})\s+(?:\d{1,3}(?:\.\d)?(?:c|°C)|\d{1,3}\s+0x[0-9a-f]{4})")
_AMD_SMI = re.compile(r"\s*\|\s*AMD-SMI \d")
_PLACE = re.compile(r"\s*\|\s*[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d\s+\S")
_CLOSED = re.compile(r"\s*\+-[-+]+\+\s*$")
_LINES = 200


def _read(lines: Sequence[Line], into: Statements) -> None:
    for place, line in enumerate(lines):
        below = lines[place + 1 : place + 1 + _LINES]
        if _CONCISE.match(line.text):
            _concise(below, line, into)
        elif _AMD_SMI.match(line.text):
            _boxed(below, line, into)


def _concise(lines: Sequence[Line], head: Line, into: Statements) -> None:
    """States the number of rows if the end of the table is there and none is missing."""
    numbers: list[int] = []
    for line in lines:
        row = _ROW.match(line.text)
        if row:
            numbers.append(int(row["index"]))
        elif _END.match(line.text):
            if numbers == list(range(len(numbers))):
                into.state(OsInfo, "amd_gpus", len(numbers), head)
            return


def _boxed(lines: Sequence[Line], head: Line, into: Statements) -> None:
    count = 0
    for line in lines:
        if _PLACE.match(line.text):
            count += 1
        elif count and _CLOSED.match(line.text):
            into.state(OsInfo, "amd_gpus", count, head)
            return
        elif not line.text.lstrip().startswith(("|", "+")):
            return


READER = Reader("rocm-smi", _read)
