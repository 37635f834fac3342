"""Which alternatives of a regular expression occur in none of a set of lines."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from typing import Any

_NEW = sys.version_info >= (3, 11)
_parser: Any = importlib.import_module("re._parser" if _NEW else "sre_parse")
_compiler: Any = importlib.import_module("re._compiler" if _NEW else "sre_compile")


def _inner(operation: Any, argument: Any) -> list[Any]:
    """The parts of one operation that are patterns themselves."""
    name = str(operation)
    if name == "BRANCH":
        return list(argument[1])
    if name == "SUBPATTERN":
        return [argument[3]]
    if name.endswith("_REPEAT"):
        return [argument[2]]
    if name in {"ASSERT", "ASSERT_NOT"}:
        return [argument[1]]
    return [argument] if name == "ATOMIC_GROUP" else []


def _parts(tree: Any) -> Iterator[Any]:
    yield tree
    for operation, argument in tree:
        for part in _inner(operation, argument):
            yield from _parts(part)


def _branches(tree: Any) -> Iterator[list[Any]]:
    """Every list of alternatives outside look-arounds; what stands in one need not be matched."""
    for operation, argument in tree:
        if str(operation) == "BRANCH":
            yield argument[1]
        if not str(operation).startswith("ASSERT"):
            for part in _inner(operation, argument):
                yield from _branches(part)


def untried(pattern: str, lines: Iterable[str]) -> list[str]:
    """A description of each alternative that no line needs.

    >>> untried("disk (?:full|quota)|no space", ["disk full", "no space"])
    ['alternative 2 of 2: quota']
    """
    lines = list(lines)
    tree = _parser.parse(pattern)
    found = []
    for alternatives in _branches(tree):
        every = list(alternatives)
        for place, one in enumerate(every):
            alternatives[:] = [one]
            for part in _parts(tree):
                part.width = None  # how long a match is at least is remembered
            only = _compiler.compile(tree, tree.state.flags)
            if not any(only.search(line) for line in lines):
                found.append(f"alternative {place + 1} of {len(every)}: {_spelt(one)}")
        alternatives[:] = every
    return found


def _spelt(tree: Any) -> str:
    return "".join(chr(argument) if str(op) == "LITERAL" else "…" for op, argument in tree)
