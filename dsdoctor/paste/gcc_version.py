"""`gcc --version`, `g++ --version`: the compilers on PATH.

Source: gcc/gcc.cc of GCC 4 to 15, `print_version`: name as invoked, package, version; distributions
append a date and their own package. Read 2026-11-23.
"""

from __future__ import annotations

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


def _read(lines: Sequence[Line], into: Statements) -> None:
    found = [(line, match) for line in lines if (match := _FIRST_LINE.match(line.text))]
    named = {_COMPILERS[match["name"]] for _, match in found}
    for line, match in found:
        own = _COMPILERS[match["name"]]
        for compiler in {own} | ({"cc", "cxx"} - named):  # the two come from one package
            _state(compiler, match, line, into)


def _state(compiler: str, match: re.Match[str], line: Line, into: Statements) -> None:
    into.state(Compilers, f"{compiler}.version", match["version"], line)
    into.state(Compilers, f"{compiler}.kind", "gcc", line)
    into.state(Compilers, f"{compiler}.command", "gcc", line)
    into.state(Compilers, f"{compiler}.error", None, line)
    if compiler == "cc":
        into.state(Compilers, "cc.path", "gcc", line)  # it ran the gcc on PATH


READER = Reader("gcc --version", _read)
