"""`ls /dev/nvidia*`: the device files of the driver.

A list counts if something follows it: one that is cut has no end. Sources: coreutils 8.30 to 9.5
src/ls.c (its rows and its message, in English and Chinese); zsh 5 Src/glob.c. Read 2026-11-28.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.machine import NvidiaKernel
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_ASKED = re.compile(
    r"(?:^|.{0,80}[$#%>❯]\s?)\s*(?:sudo\s+)?(?:ls|ll)(?:\s+-\w{1,6})*\s+/dev/nvidia\*\s*$"
)
_NONE = re.compile(
    r"\s*(?:ls: (?:cannot access|无法访问) ?['\u2018\"]?/dev/nvidia\*['\u2019\"]?: ?"
    r"(?:No such file or directory|没有那个文件或目录)"
    r"|zsh: no matches found: /dev/nvidia\*)\s*$"
)
_LONG = re.compile(
    r"\s*(?P<kind>[cd])[rwxsStT-]{9}[.+@]?\s+\d+\s+\S+\s+\S+\s+[\d,]+\s.{8,30}?\s"
    r"(?P<name>(?:/dev/)?nvidia[\w-]*)\s*$"
)
_SHORT = re.compile(r"\s*/dev/nvidia[\w-]*(?:\s+/dev/nvidia[\w-]*)*\s*$")
#: The files in a folder of those that were listed.
_FOLDER = re.compile(r"\s*/dev/(?P<name>nvidia[\w-]*):\s*$")
_INSIDE = re.compile(r"\s*(?:total \d+|总(?:用量|计) ?\d+|(?:nvidia-cap\d+\s*)+)\s*$")
_PROMPT = re.compile(r"[$#%>❯](?:\s|$)")
_LINES = 200


def _read(lines: Sequence[Line], into: Statements) -> None:
    for place, line in enumerate(lines):
        if _NONE.match(line.text):
            into.state(NvidiaKernel, "device_nodes", [], line)
        elif _ASKED.match(line.text):
            names = _names(lines[place + 1 : place + 1 + _LINES])
            if names:
                into.state(NvidiaKernel, "device_nodes", sorted(names), line)


def _names(lines: Sequence[Line]) -> set[str]:
    """The names below the command; none if their list has no end."""
    names: set[str] = set()
    for place, line in enumerate(lines):
        folder, row = _FOLDER.match(line.text), _LONG.match(line.text)
        if folder:
            names.add(folder["name"])
        elif row:
            # the files of a folder are listed by their names alone
            if row["name"].startswith("/dev/"):
                names.add(row["name"].removeprefix("/dev/"))
        elif _SHORT.match(line.text):
            names.update(word.removeprefix("/dev/") for word in line.text.split())
        elif line.text.strip() and not _INSIDE.match(line.text):
            ended = place + 1 < len(lines) or line.fence or _PROMPT.search(line.text)
            return names if ended else set()
    return set()


READER = Reader("ls /dev/nvidia*", _read)
