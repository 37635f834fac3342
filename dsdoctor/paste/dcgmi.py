"""What DCGM says of GPUs: `dcgmi diag` and `dcgmi health --check`.

Their tables break a message between any two letters, so it is compared without blanks. Texts of
dcgm_errors.h of DCGM 3 and 4, read 2026-11-28.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

#: A row of its tables: a name, or nothing where the text above goes on, and a text.
_ROW = re.compile(r"\s*\|(?P<name>[^|]{0,60})\|(?P<text>[^|]{0,200})\|?\s*$")
#: Rows of the longest message.
_MOST = 8
_GPU = r"GPU(?P<gpu>\d{1,2})"


def _yes(_: str) -> bool:
    return True


#: A message without blanks, the field that it states, and the value.
_MESSAGES: tuple[tuple[str, str, Callable[[str], Any]], ...] = (
    (rf"{_GPU}haduncorrectablememoryerrorsandrowremappingfailed",
     "health.remapped_rows_failure", _yes),
    (rf"{_GPU}hadmemoryerrorsandrowremappingsarepending",
     "health.remapped_rows_pending", _yes),
    (rf"{_GPU}haduncorrectablememoryerrorsand(?P<value>\d{{1,6}})rowswereremapped",
     "health.remapped_rows_uncorrected", int),
    (rf"Detected(?P<value>\d{{1,9}})volatiledouble-bitECCerror\(s\)in{_GPU}",
     "health.ecc_volatile_uncorrected", int),
    (rf"Apendingretiredpagehasbeendetectedin{_GPU}",
     "health.retired_pages_pending", _yes),
    (rf"AcorruptInfoROMhasbeendetectedin{_GPU}",
     "health.inforom_valid", lambda _: False),
    (rf"Persistencemodefor{_GPU}isdisabled",
     "persistence_mode", lambda _: False),
)  # fmt: skip
_PATTERNS = tuple((re.compile(pattern), field, value) for pattern, field, value in _MESSAGES)
#: A message that begins in a line has its first word there.
_FIRST = re.compile(r"GPU\s?\d|Detected|A pending|A corrupt|Persistence mode for")


def _read(lines: Sequence[Line], into: Statements) -> None:
    for place, line in enumerate(lines):
        if not _FIRST.search(line.text):
            continue
        text = _whole(lines[place : place + _MOST])
        for pattern, field, value in _PATTERNS:
            for found in pattern.finditer(text):
                groups = found.groupdict()
                index = int(groups["gpu"])
                into.state(Gpus, f"gpus.{index}.index", index, line)
                into.state(Gpus, f"gpus.{index}.{field}", value(groups.get("value") or ""), line)


def _whole(lines: Sequence[Line]) -> str:
    """The message that begins in the first line, without blanks."""
    row = _ROW.match(lines[0].text)
    if row is None:
        return re.sub(r"\s", "", lines[0].text)
    texts = [row["text"]]
    for line in lines[1:]:
        row = _ROW.match(line.text)
        if row is None or row["name"].strip():
            break
        texts.append(row["text"])
    return re.sub(r"\s", "", "".join(texts))


READER = Reader("dcgmi", _read)
