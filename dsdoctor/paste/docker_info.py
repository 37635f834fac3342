"""`docker info`: kernel, processor, memory and runtimes of the (virtual) machine of the daemon.

Source: docker/cli v18 to v28 cli/command/system/info.go, read 2026-11-28.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.machine import ContainerRuntimes, OsInfo, Resources
from dsdoctor.model.units import BINARY
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

#: A row that nothing else prints.
_FIRST = re.compile(r"\s*(?:Server Version: \d|Cgroup Driver: |Storage Driver: )")
_ROW = re.compile(
    r"\s*(?P<key>Kernel Version|OSType|Architecture|CPUs|Total Memory): (?P<value>\S{1,80})\s*$"
)
_RUNTIMES = re.compile(r"\s*Runtimes: (?P<names>[a-z][\w.-]{0,60}(?: [a-z][\w.-]{0,60}){0,20})\s*$")
_DEFAULT = re.compile(r"\s*Default Runtime: (?P<name>[a-z][\w.-]{0,60})\s*$")
_SIZE = re.compile(r"(?P<number>\d{1,6}(?:\.\d{1,3})?)(?P<unit>[KMGT])iB$")
_LINES = 80


def _read(lines: Sequence[Line], into: Statements) -> None:
    place = next((at for at, line in enumerate(lines) if _FIRST.match(line.text)), len(lines))
    # the last line of a text may be cut
    for line in lines[place : min(place + _LINES, len(lines) - 1)]:
        row = _ROW.match(line.text)
        if line.fence:
            return
        if found := _RUNTIMES.match(line.text):
            into.state(ContainerRuntimes, "names", found["names"].split(), line)
        elif found := _DEFAULT.match(line.text):
            into.state(ContainerRuntimes, "default", found["name"], line)
        if row:
            _state(row["key"], row["value"], line, into)


def _state(key: str, value: str, line: Line, into: Statements) -> None:
    size = _SIZE.match(value)
    if key == "Kernel Version" and re.match(r"\d\.\d{1,3}\.\d", value):
        into.state(OsInfo, "release", value, line)
        into.state(OsInfo, "wsl", "microsoft" in value.lower(), line)
    elif key == "OSType" and value == "linux":
        into.state(OsInfo, "system", "Linux", line)
    elif key == "Architecture" and value in ("x86_64", "aarch64"):
        into.state(OsInfo, "machine", value, line)
    elif key == "CPUs" and value.isdecimal() and len(value) < 5:  # noqa: PLR2004
        into.state(Resources, "cpus_logical", int(value), line)
    elif key == "Total Memory" and size:
        total = int(float(size["number"]) * BINARY[size["unit"].lower()])
        into.state(Resources, "memory_total_bytes", total, line)


READER = Reader("docker info", _read)
