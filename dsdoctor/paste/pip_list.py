"""`pip list`, `pip freeze` and `uv tree`: distributions; not whether the list is complete."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.python import Packages
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader, state_package
from dsdoctor.paste.statements import Statements

_HEAD = re.compile(r"\s*Package\s+Version\b")
_RULE = re.compile(r"\s*-{3,}\s+-{3,}")
_ROW = re.compile(
    r"\s*(?P<name>[A-Za-z][\w.-]{0,60})\s+(?P<version>\d[\w.+!-]{0,60})(?:\s+\S{1,200})?\s*$"
)
_FROZEN = re.compile(r"(?P<name>[A-Za-z][\w.-]{0,60})==(?P<version>\d[\w.+!-]{0,60})\s*$")
#: What `pip freeze` prints for a wheel that was installed from a file or a URL.
_WHEEL = re.compile(
    r"(?P<name>[A-Za-z][\w.-]{0,60}) @ \S{0,200}/(?:[A-Za-z][\w.]{0,60})-"
    r"(?P<version>\d[\w.+!%]{0,60})-(?:cp|py)\d\S*$"
)
#: A shell's line that starts pip, with what precedes it in a terminal or a notebook.
_COMMAND = re.compile(
    r"\s*(?:\([^()]{1,40}\)\s*)?(?:(?:PS |\[[^\]]{1,60})?\S{0,80}[$#>%!\u276f\u279c]\s*)?"
    r"(?:\S{0,80}python[\d.]{0,5} -m |uv )?pip[\d.]{0,5} (?:list|freeze)(?:\s|$)"
)
#: `pip list --format=json` prints one line, which may be longer than what is read of it.
_JSON = re.compile(r"\s*\[\{\"name\": \"")
_OBJECT = re.compile(
    r"\{\"name\": \"(?P<name>[A-Za-z][\w.-]{0,60})\", "
    r"\"version\": \"(?P<version>\d[\w.+!-]{0,60})\""
)
#: `uv tree`; cargo prints the same of Rust's crates, so its command must stand above.
_TREE = re.compile(
    r"[│\s]*[├└]── (?P<name>[A-Za-z][\w.-]{0,60})(?:\[[\w, -]{1,60}\])? "
    r"v(?P<version>\d[\w.+!]{0,60})(?: \([^()]{1,40}\))*\s*$"
)
_TREES = re.compile(r"(?:^|.{0,80}[$#%>❯!]\s?)\s*uv tree(?:\s+\S{1,80}){0,4}\s*$")
#: Fewer lines of `name==version` may just as well be requirements.
_FEWEST = 10


def _read(lines: Sequence[Line], into: Statements) -> None:
    for place, line in enumerate(lines[:-1]):
        if _HEAD.match(line.text) and _RULE.match(lines[place + 1].text):
            _table(lines, place + 2, into)
        if _JSON.match(line.text):
            _objects(line, into)
        if _COMMAND.match(line.text):
            _answer(lines, place + 1, into)
        if _TREES.match(line.text):
            _tree(lines[place + 1 :], into)
    run: list[tuple[Line, re.Match[str]]] = []
    for line in lines:
        found = _FROZEN.match(line.text) or _WHEEL.match(line.text)
        if found:
            run.append((line, found))
        elif line.text.strip() and not re.match(r"(?:-e |\S+ @ |#)", line.text):
            _frozen(run, into)
            run = []
    _frozen(run, into)
    _headless(lines, into)


def _tree(lines: Sequence[Line], into: Statements) -> None:
    """Reads the rows below `uv tree`; a package that several need has several rows."""
    for place, line in enumerate(lines):
        row = _TREE.match(line.text)
        if row and not into.states(Packages, f"packages.{row['name'].lower()}"):
            state_package(row["name"], row["version"], line, into)
        elif row is None and place and line.text.strip():  # the first is the project itself
            return


def _answer(lines: Sequence[Line], place: int, into: Statements) -> None:
    """Reads the rows directly below the command, even if `grep` removed most of them."""
    for line in lines[place:]:
        found = _ROW.match(line.text) or _FROZEN.match(line.text) or _WHEEL.match(line.text)
        if found is None:
            return
        state_package(found["name"], found["version"].replace("%2B", "+"), line, into)


def _objects(line: Line, into: Statements) -> None:
    """Reads a list of objects; that of another tool contains neither pip nor torch."""
    rows = list(_OBJECT.finditer(line.text))
    for row in rows if {"pip", "torch"} & {row["name"] for row in rows} else ():
        into.recognized()
        state_package(row["name"], row["version"], line, into)


def _headless(lines: Sequence[Line], into: Statements) -> None:
    """A list whose head was cut off: rows of two cells in pip's order."""
    run: list[tuple[Line, re.Match[str]]] = []
    for line in [*lines, Line(0, "")]:
        row = _ROW.match(line.text)
        if row and (not run or run[-1][1]["name"].lower() < row["name"].lower()):
            run.append((line, row))
            continue
        if len(run) >= _FEWEST and not _RULE.match(lines[run[0][0].number - 2].text):
            into.recognized()
            for at, found in run:
                state_package(found["name"], found["version"], at, into)
        run = [(line, row)] if row else []


def _table(lines: Sequence[Line], place: int, into: Statements) -> None:
    into.recognized()
    for line in lines[place:]:
        found = _ROW.match(line.text)
        if found is None:
            return
        state_package(found["name"], found["version"], line, into)


def _frozen(run: list[tuple[Line, re.Match[str]]], into: Statements) -> None:
    if len(run) < _FEWEST:
        return
    into.recognized()
    for line, found in run:
        state_package(found["name"], found["version"].replace("%2B", "+"), line, into)


READER = Reader("pip list", _read)
