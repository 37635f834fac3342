"""Separates the functions of a shell script from the lines that it runs."""

from __future__ import annotations

import bisect
import re
from typing import TypeAlias

#: Logical lines, each with the number of its first one.
Rows: TypeAlias = list[tuple[int, str]]

_BEGIN = re.compile(
    r"(?P<indent>[ \t]*)(?:function[ \t]+(?P<name>[\w.:-]+)[ \t]*(?:\([ \t]*\))?"
    r"|(?P<other>[\w.:-]+)[ \t]*\([ \t]*\))[ \t]*(?P<brace>\{?)[ \t]*(?P<rest>[^\n]*)$"
)
_END = re.compile(r"(?P<indent>[ \t]*)\}(?:[ \t;#].*)?$")
#: A longer body is read as lines of the script.
_MOST_LINES = 1000


def split_functions(rows: Rows) -> tuple[Rows, dict[str, Rows]]:
    """The lines outside functions, and the body of each function.

    A function ends with a bracket that stands as far to the right as it began.

    >>> split_functions([(1, "f() {"), (2, "  torchrun $1"), (3, "}"), (4, "f t.py")])
    ([(4, 'f t.py')], {'f': [(2, '  torchrun $1')]})
    >>> split_functions([(1, "function f { torchrun t.py; }  # all")])[1]
    {'f': [(1, 'torchrun t.py;')]}
    """
    closing: dict[str, list[int]] = {}
    for at, (_, line) in enumerate(rows):
        if ended := _END.match(line):
            closing.setdefault(ended["indent"], []).append(at)
    outside: Rows = []
    functions: dict[str, Rows] = {}
    place = 0
    while place < len(rows):
        number, line = rows[place]
        place += 1
        begun = _BEGIN.match(line)
        if begun is None:
            outside.append((number, line))
            continue
        name, rest = begun["name"] or begun["other"], begun["rest"]
        short = re.match(r"(?P<body>.*[;\s])\}[ \t;]*(?:#.*)?$", rest) if begun["brace"] else None
        if short is not None:
            functions[name] = [(number, short["body"].strip())]
            continue
        opened = place if begun["brace"] else place + 1
        if not begun["brace"] and (place >= len(rows) or rows[place][1].strip() != "{"):
            outside.append((number, line))
            continue
        after = closing.get(begun["indent"], [])
        at = bisect.bisect_left(after, opened)
        end = after[at] if at < len(after) and after[at] - opened < _MOST_LINES else None
        if end is None:
            outside.append((number, line))
            continue
        first = [(number, rest)] if rest and not rest.startswith("#") else []
        functions[name] = [*first, *rows[opened:end]]
        place = end + 1
    return outside, functions
