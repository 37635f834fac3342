"""`uname`, `hostnamectl`, `ldd --version`, /etc/os-release, `lsmod`, `wsl --version`: the system.

The form for issues of WSL asks which of its two versions is used, with a box to tick.

Sources: coreutils src/uname.c, glibc elf/ldd.bash.in, os-release(5), kmod tools/lsmod.c, WSL 2
localization/strings/en-US, .github/ISSUE_TEMPLATE, systemd src/hostname/hostnamectl.c; read
2026-11-30.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.machine import NvidiaKernel, OsInfo
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_UNAME = re.compile(
    r"\s*(?:uname: )?Linux \S{1,80} (?P<release>\d\.\d{1,3}\.\d\S{0,80}) #\d.{0,120}"
    r"\b(?P<machine>x86_64|aarch64)\b.{0,40}GNU/Linux\s*$"
)
#: The command, at a prompt or on its own; its output is the next line.
_ASKED = re.compile(r"(?:^|.{0,80}[$#%>❯]\s)\s*uname -r\s*$")
_RELEASE = re.compile(r"\s*(?P<release>\d\.\d{1,3}\.\d[\w.+-]{0,80})\s*$")
_LDD = re.compile(r"\s*ldd \([^()]{1,60}\) (?P<version>2\.\d{1,2})\s*$")
_OS = re.compile(r"\s*(?P<key>ID|VERSION_ID)=\"?(?P<value>[\w.-]{1,30})\"?\s*$")
#: Two fields of `hostnamectl`, one below the other; `docker info` has other names for them.
_HOST_OS = re.compile(
    r"\s*Operating System: (?P<name>[A-Z]\w{1,20})\D{0,30}(?P<number>\d{1,2}(?:\.\d{1,2})?)"
)
_HOST_KERNEL = re.compile(r"\s*Kernel: Linux (?P<release>\d\.\d{1,3}\.\d[\w.+-]{0,80})\s*$")
#: Fields that may stand between them.
_FARTHEST = 3
_WSL = re.compile(r"\s*(?:WSL version: \d\.\d{1,2}\.\d{1,2}[.\d]*|[-*] \[[xX]\] WSL 2)\s*$")
_LSMOD = re.compile(r"\s*Module\s+Size\s+Used by\b")
_MODULE = re.compile(r"\s*(?P<name>\w{1,60})\s+\d{1,12}\s+\d{1,6}(?:\s|$)")
#: A whole list has more; less is what `grep` let pass.
_FEWEST = 10


def _read(lines: Sequence[Line], into: Statements) -> None:
    release: dict[str, Line] = {}
    for place, line in enumerate(lines):
        system, libc, entry = (form.match(line.text) for form in (_UNAME, _LDD, _OS))
        if system:
            into.state(OsInfo, "system", "Linux", line)
            into.state(OsInfo, "release", system["release"], line)
            into.state(OsInfo, "machine", system["machine"], line)
            into.state(OsInfo, "wsl", "microsoft" in system["release"].lower(), line)
        elif _ASKED.match(line.text):
            below = lines[place + 1] if place + 1 < len(lines) else None
            answer = _RELEASE.match(below.text) if below is not None else None
            if answer and below is not None:
                into.state(OsInfo, "release", answer["release"], below)
                into.state(OsInfo, "wsl", "microsoft" in answer["release"].lower(), below)
        elif _HOST_OS.match(line.text):
            _host(lines[place : place + 1 + _FARTHEST], into)
        elif libc:
            into.state(OsInfo, "libc", f"glibc {libc['version']}", line)
        elif _WSL.match(line.text):
            into.state(OsInfo, "wsl", True, line)
        elif entry:
            release.setdefault(entry["key"], line)
        elif _LSMOD.match(line.text):
            _modules(lines, place, into)
    if release.keys() == {"ID", "VERSION_ID"}:
        name, number = (_OS.match(release[key].text) for key in ("ID", "VERSION_ID"))
        if name and number:
            into.state(OsInfo, "distribution", f"{name['value']} {number['value']}", release["ID"])


def _host(lines: Sequence[Line], into: Statements) -> None:
    """What `hostnamectl` prints of the system, if the kernel is that of Linux."""
    told = _HOST_OS.match(lines[0].text)
    for line in lines[1:]:
        kernel = _HOST_KERNEL.match(line.text)
        if kernel and told and not into.states(OsInfo, "release"):
            into.state(OsInfo, "release", kernel["release"], line)
            into.state(OsInfo, "wsl", "microsoft" in kernel["release"].lower(), line)
            name = f"{told['name'].lower()} {told['number']}"
            into.state(OsInfo, "distribution", name, lines[0])


def _modules(lines: Sequence[Line], place: int, into: Statements) -> None:
    """States which of the modules for NVIDIA GPUs are loaded, where the list is whole."""
    found: list[str] = []
    for line in lines[place + 1 :]:
        module = _MODULE.match(line.text)
        if module is None:
            break
        found.append(module["name"])
    if len(found) >= _FEWEST:
        ours = sorted(name for name in found if name.startswith("nvidia") or name == "nouveau")
        into.state(NvidiaKernel, "modules", ours, lines[place])
        if "nvidia" not in ours:
            into.state(NvidiaKernel, "module_version", None, lines[place])


READER = Reader("uname", _read)
