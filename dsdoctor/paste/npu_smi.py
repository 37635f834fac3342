"""`npu-smi info` of Ascend NPUs and `hl-smi` of Gaudi HPUs: their health, and memory in use.

Source: the tables of npu-smi 21 to 26 and of hl-smi 1.4 to 1.22 in public reports and in Huawei's
and Intel's documentation, read 2026-11-30. An Ascend device has two lines for each of its chips, a
Gaudi two. There is no condition for what they report, so it becomes a sentence of the report.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dsdoctor.paste.lines import Line
from dsdoctor.paste.memory_in_use import InUse, notice_full
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_NPU_HEAD = re.compile(r"\s*\|\s*npu-smi \d\S*\s+Version: \S")
_NPU = re.compile(
    r"\s*\|\s*(?P<npu>\d{1,3})\s+(?P<name>(?:Ascend)?\d{3}\w{0,8})\s*"
    r"\|\s*(?P<health>OK|Warning|Alarm|Critical|UNKNOWN)\s*\|"
)
_CHIP = re.compile(
    r"\s*\|\s*(?P<chip>\d{1,2})(?:\s+\d{1,3})?\s*\|\s*[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:"
    r"[0-9A-Fa-f]{2}\.\d\s*\|.*?(?P<used>\d{1,7})\s*/\s*(?P<total>\d{1,7})\s*\|\s*$"
)
_HPU_HEAD = re.compile(r"\s*\|\s*HL-SMI Version:\s+hl-\d")
_HPU = re.compile(
    r"\s*\|\s*(?P<hpu>\d{1,3})\s+(?P<name>HL-\w{2,12})\s+\S+\s*\|[^|]{8,40}\|\s*(?P<events>\d{1,9})\s*\|"
)
_HPU_MEMORY = re.compile(
    r"\s*\|[^|]{10,60}\|\s*(?P<used>\d{1,7})Mi[Bb]\s*/\s*(?P<total>\d{1,7})Mi[Bb]\s*\|"
)
#: Lines of the longest table: 16 devices of two chips, and their processes.
_MOST = 200


def _npus(lines: Sequence[Line], into: Statements) -> None:
    for place, line in enumerate(lines):
        if _NPU_HEAD.match(line.text):
            into.recognized()
            _table_of_npus(_table(lines, place, _NPU_HEAD), into)


def _table(lines: Sequence[Line], place: int, head: re.Pattern[str]) -> Iterator[Line]:
    """The lines of one table, up to a fence or the next table."""
    for line in lines[place + 1 : place + 1 + _MOST]:
        if line.fence or head.match(line.text):
            return
        yield line


def _table_of_npus(lines: Iterator[Line], into: Statements) -> None:
    found: list[InUse] = []
    number = ""
    for line in lines:
        device, chip = _NPU.match(line.text), _CHIP.match(line.text)
        if device:
            number = device["npu"]
            if device["health"] != "OK":
                into.notice(
                    f"`npu-smi info` reports NPU {number} ({device['name']}) as {device['health']}"
                    f" (line {line.number}); `npu-smi info -t health -i {number}` shows why"
                )
        elif chip and number:
            name = f"chip {chip['chip']} of NPU {number}"
            found.append(InUse(name, int(chip["used"]), int(chip["total"]), "MB", line))
    notice_full("npu-smi info", found, into)


def _hpus(lines: Sequence[Line], into: Statements) -> None:
    for place, line in enumerate(lines):
        if _HPU_HEAD.match(line.text):
            into.recognized()
            _table_of_hpus(_table(lines, place, _HPU_HEAD), into)


def _table_of_hpus(lines: Iterator[Line], into: Statements) -> None:
    found: list[InUse] = []
    number = ""
    for line in lines:
        device, memory = _HPU.match(line.text), _HPU_MEMORY.match(line.text)
        if device:
            number = device["hpu"]
            if int(device["events"]):
                into.notice(
                    f"`hl-smi` shows {int(device['events'])} for HPU {number} ({device['name']},"
                    f" line {line.number}) in its last column, its memory's errors; 0 is right"
                )
        elif memory and number:
            name = f"HPU {number}"
            found.append(InUse(name, int(memory["used"]), int(memory["total"]), "MiB", line))
            number = ""
    notice_full("hl-smi", found, into)


NPU = Reader("npu-smi", _npus)
HPU = Reader("hl-smi", _hpus)
