"""Texts that make a backtracking engine work hardest on a pattern, made from its parse tree."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from typing import Any

_parser: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")


def _sample(nodes: Any) -> str:
    """A short text that the nodes match, as far as that is easy to tell."""
    out = ""
    for operation, argument in nodes:
        name = str(operation)
        if name == "LITERAL":
            out += chr(argument)
        elif name == "NOT_LITERAL":
            out += "a" if chr(argument) != "a" else "b"
        elif name == "ANY":
            out += "x"
        elif name == "IN":
            out += _member(argument)
        elif name == "BRANCH":
            out += _sample(argument[1][0])
        elif name == "SUBPATTERN":
            out += _sample(argument[3])
        elif name == "ATOMIC_GROUP":
            out += _sample(argument)
        elif name.endswith("_REPEAT"):
            low, _, body = argument
            out += _sample(body) * max(int(low), 1)
    return out


_CLASSES = {
    "CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a",
    "CATEGORY_NOT_DIGIT": "a", "CATEGORY_NOT_SPACE": "a", "CATEGORY_NOT_WORD": " ",
}  # fmt: skip


def _member(items: Any) -> str:
    if str(items[0][0]) == "NEGATE":
        for letter in "ax1 -":
            if re.fullmatch("[^" + "".join(map(_shown, items[1:])) + "]", letter):
                return letter
        return "~"
    operation, argument = items[0]
    name = str(operation)
    if name == "LITERAL":
        return chr(argument)
    if name == "RANGE":
        return chr(argument[0])
    return _CLASSES.get(str(argument), "a")


def _shown(item: Any) -> str:
    operation, argument = item
    name = str(operation)
    if name == "LITERAL":
        return re.escape(chr(argument))
    if name == "RANGE":
        return re.escape(chr(argument[0])) + "-" + re.escape(chr(argument[1]))
    return {"CATEGORY_DIGIT": r"\d", "CATEGORY_SPACE": r"\s", "CATEGORY_WORD": r"\w",
            "CATEGORY_NOT_DIGIT": r"\D", "CATEGORY_NOT_SPACE": r"\S",
            "CATEGORY_NOT_WORD": r"\W"}[str(argument)]  # fmt: skip


def _pieces(nodes: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """Each repeat of a pattern: what leads up to it, and what it repeats."""
    for place, (operation, argument) in enumerate(nodes):
        name = str(operation)
        lead = before + _sample(nodes[:place])
        if name.endswith("_REPEAT"):
            body = argument[2]
            yield lead, _sample(body)
            yield from _pieces(body, lead)
        elif name == "BRANCH":
            for branch in argument[1]:
                yield from _pieces(branch, lead)
        elif name == "SUBPATTERN":
            yield from _pieces(argument[3], lead)
        elif name == "ATOMIC_GROUP":
            yield from _pieces(argument, lead)


def _branches(nodes: Any) -> Iterator[str]:
    """A text for every alternative, however deep."""
    for place, (operation, argument) in enumerate(nodes):
        name = str(operation)
        inner: list[Any] = []
        if name == "BRANCH":
            inner = list(argument[1])
        elif name == "SUBPATTERN":
            inner = [argument[3]]
        elif name.endswith("_REPEAT"):
            inner = [argument[2]]
        for one in inner:
            for text in _branches(one):
                yield _sample(nodes[:place]) + text
    yield _sample(nodes)


def worst_cases(pattern: str, size: int) -> Iterator[str]:
    """Texts of about `size` characters: every near-match over and over, never quite complete.

    Three shapes for each repeat and each alternative: the lead-in again and again (many starts),
    the lead-in once and then its repeat without end (one long run), and both in turns.
    """
    tree = _parser.parse(pattern)
    seen: set[str] = set()
    rows = [*_pieces(tree), *((text[:-1], "x") for text in _branches(tree) if text)]
    for lead, body in rows:
        for long in (
            lead * (size // max(1, len(lead)) + 1) if lead else "",
            lead + body * (size // max(1, len(body)) + 1) if body else "",
            (lead + body) * (size // max(1, len(lead + body)) + 1),
        ):
            text = long[:size]
            key = text[:200]
            if text and key not in seen:
                seen.add(key)
                yield text
    yield "a" * size
    yield " " * size
