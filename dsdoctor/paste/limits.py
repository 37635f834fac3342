"""`df`, `ulimit`, `prlimit`, /proc/PID/limits: /dev/shm, full file systems, limits of a process.

Sources: coreutils 8.30-9.5 src/df.c (sizes in powers of 1024 with `-h`, in KiB under `1K-blocks`);
bash 4.4-5.2 builtins/ulimit.def, zsh 5.0-5.9 Src/Builtins/rlimits.c, dash 0.5.11 src/miscbltin.c
(memory in KiB); util-linux 2.21-2.41 sys-utils/prlimit.c and Linux fs/proc/base.c (bytes, the soft
limit first). Read 2026-11-24 and 2026-11-28. How much of /dev/shm was
in use at that moment is not read, nor is a hard limit: a job starts with the soft one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.machine import Resources
from dsdoctor.model.facts.storage import Storage
from dsdoctor.model.units import BINARY
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_KIB = 1 << 10
_SHM = re.compile(
    r"\s*\S{1,60}(?:\s+tmpfs)?\s+(?P<size>\d{1,15}(?:\.\d)?)(?P<unit>[KMGT]?)i?\s+"
    r"\d[\d.]{0,15}[KMGT]?i?\s+\d[\d.]{0,15}[KMGT]?i?\s+(?:\d{1,3}%|-)\s+/dev/shm\s*$"
)
#: A row of a file system of which `df` rounds what is used to all of it.
_FULL = re.compile(
    r"\s*(?P<device>\S{1,120})(?:\s+(?:ext[234]|xfs|btrfs|zfs|overlay|nfs4?|lustre|tmpfs|vfat))?"
    r"\s+(?P<size>\d{1,15}(?:\.\d)?)(?P<unit>[KMGTP]?)i?\s+\d[\d.]{0,15}[KMGTP]?i?"
    r"\s+(?P<free>\d{1,15}(?:\.\d)?)(?P<free_unit>[KMGTP]?)i?\s+100%\s+(?P<mount>/\S{0,200})\s*$"
)
#: Images, which are full by nature, and what no job writes to.
_IMAGES = re.compile(r"/dev/(?:loop|sr)\d")
_UNUSED = re.compile(r"/(?:snap|boot|sys|dev|proc|run|media|cdrom)(?:/|$)")
_IN_KIB = re.compile(r"\bFilesystem\b.{0,40}\b1K-blocks\b")
#: The command, at a prompt or on its own; its output is the next line.
_ASKED = re.compile(r"(?:^|[$#%>❯]\s*)ulimit -S?(?P<what>[lnsuv])\s*$")
_ANSWER = re.compile(r"\s*(?P<value>\d{1,18}|unlimited)\s*$")
#: A row of `ulimit -a`.
_ROW = re.compile(
    r"\s*(?:max locked memory|open files|stack size|max user processes|virtual memory)"
    r"\s+\((?:kbytes, )?-(?P<what>[lnsuv])\)"
    r"\s+(?P<value>\d{1,18}|unlimited)\s*$"
)
#: A row of zsh's (`-l: locked-in-memory size (kbytes)  64`) and of dash's.
_ZSH = re.compile(
    r"\s*-(?P<what>[lnsuv]): (?:locked-in-memory size|file descriptors|stack size|processes"
    r"|address space)(?: \(k(?:bytes|B)\))?\s+(?P<value>\d{1,18}|unlimited)\s*$"
)
_DASH = re.compile(
    r"\s*(?P<name>locked memory|nofiles|stack|process|vmemory)(?:\(kbytes\))?"
    r"\s+(?P<value>\d{1,18}|unlimited)\s*$"
)
_DASH_NAMES = {"locked memory": "l", "nofiles": "n", "stack": "s", "process": "u", "vmemory": "v"}
#: dash's list begins with this row; its names alone are ordinary words.
_DASH_FIRST = re.compile(r"\s*time\(seconds\)\s+(?:\d{1,18}|unlimited)\s*$")
_DASH_ROWS = 14
#: A row of /proc/PID/limits, and of `prlimit`.
_OF_PROCESS = re.compile(
    r"\s*(?:Max (?P<name>locked memory|open files|stack size|processes|address space)"
    r"|(?P<word>MEMLOCK|NOFILE|STACK|NPROC|AS)\s+[a-z][\w -]{3,50})"
    r"\s+(?P<value>\d{1,20}|unlimited)\s+(?:\d{1,20}|unlimited)(?:\s+(?:bytes|files|processes))?\s*$"
)
_PROCESS_NAMES = {
    "locked memory": "l", "open files": "n", "stack size": "s", "processes": "u",
    "address space": "v", "MEMLOCK": "l", "NOFILE": "n", "STACK": "s", "NPROC": "u", "AS": "v",
}  # fmt: skip


#: Option of `ulimit` to the field, and the unit of what it prints.
_FIELDS = {
    "l": ("limit_memlock", _KIB),
    "n": ("limit_nofile", 1),
    "s": ("limit_stack", _KIB),
    "u": ("limit_nproc", 1),
    "v": ("limit_address_space", _KIB),
}


def _limit(what: str, value: str, line: Line, into: Statements, *, in_bytes: bool = False) -> None:
    field, unit = _FIELDS[what]
    unit = 1 if in_bytes else unit
    into.state(Resources, field, None if value == "unlimited" else int(value) * unit, line)


def _read_dash(lines: Sequence[Line], into: Statements) -> None:
    for place, first in enumerate(lines):
        if not _DASH_FIRST.match(first.text):
            continue
        for line in lines[place + 1 : place + _DASH_ROWS]:
            row = _DASH.match(line.text)
            if row:
                _limit(_DASH_NAMES[row["name"]], row["value"], line, into)


def _read_ulimit(lines: Sequence[Line], into: Statements) -> None:
    _read_dash(lines, into)
    for line, behind in zip(lines, [*lines[1:], None], strict=True):
        row = _ROW.match(line.text) or _ZSH.match(line.text)
        if row:
            _limit(row["what"], row["value"], line, into)
        elif shown := _OF_PROCESS.match(line.text):
            what = _PROCESS_NAMES[shown["name"] or shown["word"]]
            _limit(what, shown["value"], line, into, in_bytes=True)
        asked = _ASKED.search(line.text)
        answer = _ANSWER.match(behind.text) if behind and asked else None
        if asked and answer and behind:
            _limit(asked["what"], answer["value"], behind, into)


def _full(line: Line, unit: int | None, place: int, into: Statements) -> int:
    """States a full file system as the place with this number, and returns the next number."""
    found = _FULL.match(line.text)
    size = BINARY.get(found["unit"].lower(), unit) if found else None
    left = BINARY.get(found["free_unit"].lower(), unit or 0) if found else 0
    if not found or not size or _IMAGES.match(found["device"]) or _UNUSED.match(found["mount"]):
        return place
    free = float(found["free"])
    if free and not left:  # a number without a unit, and no head of a table that gives it
        return place
    into.state(Storage, f"places.{place}.purpose", "mounted file system", line)
    into.state(Storage, f"places.{place}.path", found["mount"], line)
    into.state(Storage, f"places.{place}.mount", found["mount"], line)
    into.state(Storage, f"places.{place}.total_bytes", int(float(found["size"]) * size), line)
    into.state(Storage, f"places.{place}.free_bytes", int(free * (left or 0)), line)
    return place + 1


def _read_df(lines: Sequence[Line], into: Statements) -> None:
    full = 0
    unit = None  # a number without a unit has that of the table's head
    for line in lines:
        if "Filesystem" in line.text:
            unit = _KIB if _IN_KIB.search(line.text) else None
        full = _full(line, unit, full, into)
        found = _SHM.match(line.text)
        size = BINARY.get(found["unit"].lower(), unit) if found else None
        if found and size:
            into.state(Resources, "shm_total_bytes", int(float(found["size"]) * size), line)


DF = Reader("df", _read_df)
ULIMIT = Reader("ulimit", _read_ulimit)
