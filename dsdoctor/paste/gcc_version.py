"""`gcc --version`, `g++ --version`: the compilers on PATH.

Source: gcc/gcc.cc of GCC 4 to 15, `print_version`: name as invoked, package, version; distributions
append a date and their own package. Read 2026-11-23. Where the shell does not find one: bash 3.2 to
5.2 execute_cmd.c, zsh 5 Src/exec.c, dash 0.5 src/exec.c; read 2026-11-29.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from dsdoctor.model.facts.toolchain import Compilers
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

#: Not with a path, or with a version in its name (`gcc-9`): a build would not use that compiler.
_FIRST_LINE = re.compile(
    r"\s*(?:> ?)?`?(?P<name>gcc|g\+\+|cc|c\+\+) \((?P<package>[^()]{1,80})\) "
    r"(?P<version>\d{1,2}\.\d{1,2}\.\d{1,2})(?: \d{8})?(?: \([^()]{1,60}\))?`?\s*$"
)
_COMPILERS = {"gcc": "cc", "cc": "cc", "g++": "cxx", "c++": "cxx"}
#: The command, at a prompt or on its own; the answer of bash, zsh or dash is the next line.
_ASKED = re.compile(r"(?:^|.{0,80}[$#%>❯]\s?)\s*(?P<name>gcc|g\+\+|cc|c\+\+) (?:--version|-v)\s*$")
_NONE = re.compile(
    r"\s*(?:-?(?:ba|da|z)?sh: (?:\d{1,4}: |line \d{1,4}: )?)?"
    r"(?:(?P<name>gcc|g\+\+|cc|c\+\+): (?:command )?not found"
    r"|command not found: (?P<zsh>gcc|g\+\+|cc|c\+\+))\s*$"
)


def _read(lines: Sequence[Line], into: Statements) -> None:
    found = [(line, match) for line in lines if (match := _FIRST_LINE.match(line.text))]
    named = {_COMPILERS[match["name"]] for _, match in found}
    for line, match in found:
        own = _COMPILERS[match["name"]]
        for compiler in {own} | ({"cc", "cxx"} - named):  # the two come from one package
            _state(compiler, match, line, into)
    for line, behind in itertools.pairwise(lines):
        asked, none = _ASKED.match(line.text), _NONE.match(behind.text)
        if asked and none and asked["name"] == (none["name"] or none["zsh"]):
            _state_absent(asked["name"], behind, into)


def _state(compiler: str, match: re.Match[str], line: Line, into: Statements) -> None:
    into.state(Compilers, f"{compiler}.version", match["version"], line)
    into.state(Compilers, f"{compiler}.kind", "gcc", line)
    into.state(Compilers, f"{compiler}.command", "gcc", line)
    into.state(Compilers, f"{compiler}.error", None, line)
    if compiler == "cc":
        into.state(Compilers, "cc.path", "gcc", line)  # it ran the gcc on PATH


def _state_absent(name: str, line: Line, into: Statements) -> None:
    compiler = _COMPILERS[name]
    into.state(Compilers, f"{compiler}.command", name, line)
    for field in ("path", "version", "error"):
        into.state(Compilers, f"{compiler}.{field}", None, line)


READER = Reader("gcc --version", _read)
