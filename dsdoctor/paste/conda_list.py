"""`conda list` (also mamba's): packages and builds; also `--json`, `--export` and `--explicit`.

`conda env export` lists them in YAML, with those of pip below; a file that people write has no
builds.

Source: conda/cli/main_list.py of conda 4.5 to 26, read 2026-11-22 and 2026-11-23.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader, state_conda_package, state_package
from dsdoctor.paste.statements import Statements

_HEAD = re.compile(r"\s*#? ?Name\s+Version\s+Build(?:\s+Channel)?\s*$")
_ROW = re.compile(
    r"\s*(?P<name>[a-z_][\w.-]{0,60})\s+(?P<version>\d[\w.+!-]{0,60})\s+"
    r"(?P<build>[\w.+-]{1,80})(?:\s+\S{1,120})?\s*$"
)
#: `--export`: `numpy=1.26.4=py310h5f9d8c6_0`.
_EXPORTED = re.compile(
    r"\s*(?P<name>[a-z_][\w.-]{0,60})=(?P<version>\d[\w.+!-]{0,60})=(?P<build>[\w.+-]{1,80})\s*$"
)
#: `--explicit`: the address of each package.
_EXPLICIT = re.compile(
    r"\s*https?://\S{1,200}/(?P<name>[a-z_][\w.-]{0,60})-(?P<version>\d[\w.+!]{0,60})-"
    r"(?P<build>[\w.+]{1,80})\.(?:tar\.bz2|conda)(?:#\w{1,64})?\s*$"
)
#: The command, whose output `grep` may have cut down to a few rows.
_COMMAND = re.compile(
    r"(?:^|.{0,80}[$#%>❯!]\s?)\s*(?:conda|mamba|micromamba) list(?:\s+[\w.*-]+)?"
    r"(?:\s*\|\s*(?:grep|findstr)\s.{0,80})?\s*$"
)
#: A field of a package in `--json`, in the order of the alphabet, between braces.
_FIELD = re.compile(
    r"\s*\"(?P<key>build_string|name|version)\": \"(?P<value>[\w.+!-]{1,80})\",?\s*$"
)
_BRACE = re.compile(r"\s*[{}],?\s*$")
_MOST_ROWS = 1000
_DEPENDENCIES = re.compile(r"\s*dependencies:\s*$")
_ITEM = re.compile(r"\s*- (?P<text>\S.{0,200})$")
_WHEEL = re.compile(r"(?P<name>[A-Za-z][\w.-]{0,60})==(?P<version>\d[\w.+!-]{0,60})\s*$")
#: A list without its head is recognized by builds such as `py310h06a4308_0` and `pypi_0 pypi`; the
#: last two are those of `pytorch-mutex`.
_BUILD = re.compile(r"(?:[\w.]+_\d{1,3}|\d{1,3}|\d{1,3}_\w+|cpu|cuda)$")
_FEWEST = 10
_ROWS = (_ROW, _EXPORTED, _EXPLICIT)


def _read(lines: Sequence[Line], into: Statements) -> None:
    headed = False
    run: list[tuple[Line, re.Match[str]]] = []
    unsure: list[tuple[Line, re.Match[str]]] = []  # these count only if more rows follow
    for line in lines:
        row = next((row for form in _ROWS if (row := form.match(line.text))), None)
        if _HEAD.match(line.text):
            headed = True
        elif row and (headed or row.re is not _ROW or _BUILD.match(row["build"])):
            run += [*unsure, (line, row)]
            unsure = []
        elif row and run:
            unsure.append((line, row))
        elif line.text.strip(" -#\u2500"):
            _say(run, into, headed=headed)
            headed, run, unsure = False, [], []
    _say(run, into, headed=headed)
    _objects(lines, into)
    for place, line in enumerate(lines):
        if _COMMAND.match(line.text):
            _answer(lines[place + 1 : place + _MOST_ROWS], into)
        if _DEPENDENCIES.match(line.text):
            _exported(lines[place + 1 :], into)


def _objects(lines: Sequence[Line], into: Statements) -> None:
    """States the packages of `--json`; another list of objects has no builds."""
    fields: dict[str, str] = {}
    for line in lines:
        field = _FIELD.match(line.text)
        if field:
            fields[field["key"]] = field["value"]
        elif _BRACE.match(line.text):
            fields = {}
        if len(fields) == 3:  # noqa: PLR2004  # all of them; the version is the last
            into.recognized()
            name = fields["name"].lower()
            state_conda_package(name, fields["version"], fields["build_string"], line, into)
            fields = {}


def _answer(lines: Sequence[Line], into: Statements) -> None:
    """States the rows directly below the command."""
    for line in lines:
        row = _ROW.match(line.text)
        if row is None or not _BUILD.match(row["build"]):
            return
        into.recognized()
        state_conda_package(row["name"], row["version"], row["build"], line, into)


def _exported(lines: Sequence[Line], into: Statements) -> None:
    """States the packages of `conda env export`, if most of conda's have their builds."""
    builds: list[tuple[Line, re.Match[str]]] = []
    pip: list[tuple[Line, re.Match[str]]] = []
    for line in lines:
        item = _ITEM.match(line.text)
        if item is None:
            break
        build, wheel = _EXPORTED.match(item["text"]), _WHEEL.match(item["text"])
        if build:
            builds.append((line, build))
        elif wheel:
            pip.append((line, wheel))
    if len(builds) < _FEWEST:
        return
    into.recognized()
    for line, row in builds:
        state_conda_package(row["name"], row["version"], row["build"], line, into)
    for line, row in pip:
        state_package(row["name"], row["version"], line, into)


def _say(run: list[tuple[Line, re.Match[str]]], into: Statements, *, headed: bool) -> None:
    if not run or (not headed and len(run) < _FEWEST):
        return
    into.recognized()
    for line, row in run:
        state_conda_package(row["name"], row["version"], row["build"], line, into)


READER = Reader("conda list", _read)
