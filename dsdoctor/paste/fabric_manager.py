"""`systemctl status nvidia-fabricmanager`, `nv-fabricmanager --version`: the fabric manager.

Sources: systemd 219 to 257 src/systemctl (`status`, `is-active`), src/basic/unit-def.c for the
states; NVIDIA Fabric Manager 450 to 590 for the version. Read 2026-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.fabric import FabricManager
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_VERSION = re.compile(r"\s*Fabric Manager version is\s*: ?(?P<version>\d{3}(?:\.\d{1,4}){1,2})\s*$")
_ABSENT = re.compile(r"\s*Unit nvidia-fabricmanager(?:\.service)? could not be found\.\s*$")
_UNIT = re.compile(r"\s*(?:\S\s+)?nvidia-fabricmanager\.service\b(?: - .{1,80})?\s*$")
_ACTIVE = re.compile(
    r"\s*Active: (?P<state>active \(running\)|inactive \(dead\)|failed|activating)(?=\s|$)"
)
#: The command, at a prompt or on its own; its output is the next line.
_ASKED = re.compile(
    r"(?:^|.{0,80}[$#%>❯]\s)\s*(?:sudo\s+)?systemctl is-active nvidia-fabricmanager"
    r"(?:\.service)?\s*$"
)
_ANSWER = re.compile(r"\s*(?P<state>active|inactive|failed|unknown)\s*$")
#: `Active:` is the third or fourth line of a status.
_LINES = 6


def _read(lines: Sequence[Line], into: Statements) -> None:
    for place, line in enumerate(lines):
        if found := _VERSION.match(line.text):
            into.state(FabricManager, "version", found["version"], line)
        elif _ABSENT.match(line.text):
            into.state(FabricManager, "running", False, line)
        elif _UNIT.match(line.text):
            _status(lines[place + 1 : place + _LINES], into)
        elif _ASKED.match(line.text) and place + 1 < len(lines):
            answer = _ANSWER.match(lines[place + 1].text)
            if answer:
                running = answer["state"] == "active"
                into.state(FabricManager, "running", running, lines[place + 1])


def _status(lines: Sequence[Line], into: Statements) -> None:
    for line in lines:
        active = _ACTIVE.match(line.text)
        if active and active["state"] != "activating":
            into.state(FabricManager, "running", active["state"].startswith("active"), line)
            return
        if line.fence or not line.text.strip():
            return


READER = Reader("systemctl status", _read)
