"""/proc/meminfo: memory, swap and huge pages of the machine.

What is in use is not read: the text does not say whether the job was running. Source: Linux 3.10 to
6.12 fs/proc/meminfo.c, read 2026-11-28.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.machine import Resources
from dsdoctor.model.facts.memory import MemoryDetail
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_ROW = re.compile(
    r"\s*(?P<key>MemTotal|SwapTotal|HugePages_Total|HugePages_Free|Hugepagesize):\s+"
    r"(?P<number>\d{1,15})(?: kB)?\s*$"
)
_KIB = 1 << 10


def _read(lines: Sequence[Line], into: Statements) -> None:
    found: dict[str, tuple[int, Line]] = {}
    for line in lines:
        row = _ROW.match(line.text)
        if row and (row["key"].startswith("HugePages_") is not line.text.endswith("kB")):
            found.setdefault(row["key"], (int(row["number"]), line))
    if "MemTotal" not in found and "HugePages_Total" not in found:
        return
    for key, field in (("MemTotal", "memory_total_bytes"), ("SwapTotal", "swap_total_bytes")):
        if key in found:
            into.state(Resources, field, found[key][0] * _KIB, found[key][1])
    if "Hugepagesize" in found:
        size = found["Hugepagesize"][0] * _KIB
        for key, field in (
            ("HugePages_Total", "hugepages_bytes"),
            ("HugePages_Free", "hugepages_free_bytes"),
        ):
            if key in found:
                into.state(MemoryDetail, field, found[key][0] * size, found[key][1])


READER = Reader("/proc/meminfo", _read)
