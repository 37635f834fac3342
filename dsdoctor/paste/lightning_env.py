"""`collect_env_details.py` of Lightning, which its form for issues asks for.

A list of sections, each with entries one level deeper; a GPU is an entry without a value. Releases
before 1.6 print torch as `pyTorch_version`. The CUDA version is that of torch's build.

Source: requirements/collect_env_details.py of Lightning 1.0 to 2.5, read 2026-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.machine import OsInfo
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import (
    Reader,
    state_cuda,
    state_cuda_available,
    state_gpu,
    state_package,
    state_python,
    state_torch,
)
from dsdoctor.paste.statements import Statements

_SECTION = re.compile(r"\s*[*-] (?P<name>CUDA|Lightning|Packages|System):\s*$")
_ITEM = re.compile(r"\s*[-*] (?P<key>[A-Za-z][\w.-]{0,60}):(?:\s+(?P<value>\S.*?))?\s*$")
_NAME = re.compile(r"\s*[-*] (?P<name>\S.{2,80}?)\s*$")
_NUMBER = re.compile(r"\d{1,2}\.\d{1,2}$")
_RELEASE = re.compile(r"\d+(?:\.\w+)*(?:[+.-]\w+)*$")
#: Releases before 1.6 print torch so; later ones by the name of its distribution.
_TORCH = ("torch", "pyTorch_version")


def _read(lines: Sequence[Line], into: Statements) -> None:
    section, devices, known = "", -1, False
    for place, line in enumerate(lines):
        found = _SECTION.match(line.text)
        if found:
            section, devices = found["name"], -1
            begins = section == "CUDA" and any(
                _key(below) == "available" for below in lines[place + 1 : place + 40]
            )
            known = begins or (known and section != "CUDA")
            if begins:
                into.recognized()
        elif line.fence or not line.text.strip():
            continue
        elif not _NAME.match(line.text):
            section = ""
        elif known and section == "CUDA":
            devices = _cuda(line, devices, into)
        elif known and section:
            _entry(section, line, into)


def _key(line: Line) -> str:
    found = _ITEM.match(line.text)
    return found["key"] if found else ""


def _cuda(line: Line, devices: int, into: Statements) -> int:
    """States one entry of the section; returns the GPUs so far, -1 outside of their list."""
    found = _ITEM.match(line.text)
    if found is None:
        name = _NAME.match(line.text)
        if name is None or devices < 0:
            return -1
        state_gpu(devices, name["name"], line, into)
        return devices + 1
    key, value = found["key"], found["value"] or ""
    if key == "GPU":
        return -1 if value else 0
    if key == "available" and value in {"True", "False"}:
        state_cuda_available(value, line, into)
    elif key == "version" and _NUMBER.match(value):
        state_cuda(value, line, into)
    return -1


def _entry(section: str, line: Line, into: Statements) -> None:
    found = _ITEM.match(line.text)
    value = (found["value"] or "") if found else ""
    if not found or not value:
        return
    if section == "System":
        if found["key"] == "python":
            state_python(value, line, into)
        elif found["key"] == "OS" and value in {"Linux", "Windows", "Darwin"}:
            into.state(OsInfo, "system", value, line)
    elif _RELEASE.match(value):
        if found["key"] in _TORCH:
            state_torch(value, line, into)
        else:
            state_package(found["key"], value, line, into)


READER = Reader("collect_env of Lightning", _read)
