"""`sysctl -a`, or any part of its output: how much memory programs may reserve.

Of all that it prints, checks judge `vm.overcommit_memory` alone: with 2, the kernel refuses what
exceeds CommitLimit. Sources: procps 3.3 to 4.0 src/sysctl.c and busybox (`NAME = VALUE`; a file
for sysctl has no blanks around `=`, and may not have been applied); Linux 3.10 to 6.12
fs/proc/meminfo.c, mm/util.c `vm_commit_limit`, read 2026-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.machine import Resources
from dsdoctor.model.facts.memory import MemoryDetail
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_ROW = re.compile(r"\s*vm\.overcommit_(?P<name>memory|ratio|kbytes) = (?P<value>\d{1,15})\s*$")
_ASKED = re.compile(r"(?:^|.{0,80}[$#%>❯]\s)\s*cat /proc/sys/vm/overcommit_memory\s*$")
_ANSWER = re.compile(r"\s*(?P<value>[012])\s*$")
_LIMIT = re.compile(r"\s*CommitLimit:\s+(?P<number>\d{1,15}) kB\s*$")
_KIB = 1 << 10
#: Never more than CommitLimit.
_STRICT = 2


def _read(lines: Sequence[Line], into: Statements) -> None:
    found: dict[str, set[int]] = {}
    where: Line | None = None
    limit: tuple[int, Line] | None = None
    for place, line in enumerate(lines):
        row = _ROW.match(line.text)
        if row:
            found.setdefault(row["name"], set()).add(int(row["value"]))
            where = line if row["name"] == "memory" else where
        elif _ASKED.match(line.text):
            answer = _ANSWER.match(lines[place + 1].text) if place + 1 < len(lines) else None
            if answer:
                found.setdefault("memory", set()).add(int(answer["value"]))
                where = lines[place + 1]
        elif row := _LIMIT.match(line.text):
            limit = int(row["number"]) * _KIB, line
    if found.get("memory") != {_STRICT} or where is None:  # another value was set in between
        return
    if limit:
        into.state(MemoryDetail, "commit_limit_bytes", *limit)
        return
    total, swap = (into.value(Resources, f"{name}_total_bytes") for name in ("memory", "swap"))
    (ratio,) = found.get("ratio", set()) if len(found.get("ratio", ())) == 1 else (None,)
    if ratio is not None and found.get("kbytes", {0}) == {0} and None not in (total, swap):
        into.state(MemoryDetail, "commit_limit_bytes", total * ratio // 100 + swap, where)


READER = Reader("sysctl", _read)
