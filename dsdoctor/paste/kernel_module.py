"""`/proc/driver/nvidia/version`, and the line that the same module prints to the kernel log.

Source: kernel-open/nvidia/nv-procfs.c and nv.c of NVIDIA's open modules 515 to 580 (`NVRM version:`
and `NVRM: loading`), read 2026-11-22; the proprietary module prints `x86_64 Kernel Module`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.machine import NvidiaKernel
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_LOADED = re.compile(
    r"\bNVRM(?: version:|: loading) NVIDIA UNIX "
    r"(?:(?P<open>Open )Kernel Module for \w{3,10}|\w{3,10} Kernel Module)\s+"
    r"(?P<version>\d{3}\.\d{1,4}(?:\.\d{1,4})?)(?:\s|$)"
)


def _read(lines: Sequence[Line], into: Statements) -> None:
    for line in lines:
        found = _LOADED.search(line.text)
        if found:
            into.state(NvidiaKernel, "module_version", found["version"], line)
            into.state(NvidiaKernel, "module_open", bool(found["open"]), line)


READER = Reader("/proc/driver/nvidia/version", _read)
