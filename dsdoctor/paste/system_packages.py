"""`dpkg -l`, `apt list --installed`, `rpm -qa`: the driver's libraries and the fabric manager.

Sources: dpkg 1.19 to 1.22 src/query/main.c; apt 1.6 to 3.0 apt-private/private-output.cc; rpm 4.14
to 4.20 (its default format). The packages are those of Ubuntu 18.04 to 24.04, Debian 11 to 13 and
NVIDIA's repositories for them and for RHEL 7 to 10. Read 2026-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.fabric import FabricManager
from dsdoctor.model.facts.machine import LibCuda
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_VERSION = r"(?:\d:)?(?P<version>\d{3}\.\d{1,4}(?:\.\d{1,4})?)(?:-\S{1,80})?"
#: A package that is installed; `rc` is one that left its configuration.
_DPKG = re.compile(rf"\s*[hi]i\s+(?P<name>[a-z][a-z0-9.+-]{{1,60}})(?::\w+)?\s+{_VERSION}\s+\w+\b")
_APT = re.compile(
    rf"\s*(?P<name>[a-z][a-z0-9.+-]{{1,60}})/\S{{1,80}} {_VERSION} \w+ \[installed(?:,\w+)*\]"
)
_RPM = re.compile(
    r"\s*(?P<name>[a-z][a-z0-9-]{1,60}?)-(?P<version>\d{3}\.\d{1,4}(?:\.\d{1,4})?)-\d\S{0,40}\."
    r"(?:x86_64|aarch64)\s*$"
)
#: The packages that contain libcuda.so.1.
_LIBCUDA = re.compile(
    r"libnvidia-compute(?:-\d{3}(?:-server)?)?|libcuda1|nvidia-driver(?:-[\w-]{1,30})?-cuda-libs"
)
_MANAGER = re.compile(r"nvidia-fabric-?manager(?:-\d{3})?")
#: Packages of another word size.
_FOREIGN = re.compile(r"\bi386\b|:i386\b|\.i686\s*$")


def _read(lines: Sequence[Line], into: Statements) -> None:
    libraries: dict[str, Line] = {}
    managers: dict[str, Line] = {}
    for line in lines:
        row = _DPKG.match(line.text) or _APT.match(line.text) or _RPM.match(line.text)
        if row is None or _FOREIGN.search(line.text):
            continue
        if _LIBCUDA.fullmatch(row["name"]):
            libraries.setdefault(row["version"], line)
        elif _MANAGER.fullmatch(row["name"]):
            managers.setdefault(row["version"], line)
    for version, line in libraries.items():
        if len(libraries) == 1:  # of several, a text does not say which one is loaded
            into.state(LibCuda, "version", version, line)
            into.state(LibCuda, "compat", False, line)
            into.state(LibCuda, "stub", False, line)
    for version, line in managers.items():
        if len(managers) == 1:
            into.state(FabricManager, "version", version, line)


READER = Reader("dpkg -l", _read)
