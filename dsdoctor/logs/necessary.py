r"""Which literal texts a pattern cannot match without.

Some anchors (`torch`, `P2P`) stand in every other line of a healthy log. Where the pattern itself
asks for rarer text, that is searched for instead, and the anchor is only compared afterwards.
"""

from __future__ import annotations

import importlib
import re
import sys
from typing import Any

from dsdoctor.logs.anchors import COMMON

#: A set of literals is worth using from this length on.
LEAST = 4
#: More alternatives than this cost more than they save.
MOST = 24

_parser: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")


def _better(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    if one is None or other is None:
        return one or other
    return max(one, other, key=lambda texts: (min(map(len, texts)), -len(texts)))


def _of(nodes: Any, *, fold: bool) -> frozenset[str] | None:
    best: frozenset[str] | None = None
    run = ""
    for operation, argument in nodes:
        name = str(operation)
        if name == "LITERAL" and not fold:
            run += chr(argument)
            continue
        if run:
            best, run = _better(best, frozenset({run})), ""
        inner: frozenset[str] | None = None
        if name == "SUBPATTERN":
            _, added, removed, body = argument
            ignore = (fold or bool(added & re.IGNORECASE)) and not removed & re.IGNORECASE
            inner = _of(body, fold=ignore)
        elif name == "ATOMIC_GROUP":
            inner = _of(argument, fold=fold)
        elif name.endswith("_REPEAT") and argument[0] > 0:
            inner = _of(argument[2], fold=fold)
        elif name == "BRANCH":
            found = [_of(branch, fold=fold) for branch in argument[1]]
            if all(found):
                inner = frozenset().union(*(texts for texts in found if texts))
        best = _better(best, inner)
    return _better(best, frozenset({run})) if run else best


def necessary(pattern: str) -> frozenset[str]:
    r"""Texts of which every match contains at least one; empty where none can be told.

    >>> sorted(necessary(r"(?:cannot import name '\w+' from|has no attribute) 'torch"))
    ['cannot import name ', 'has no attribute']
    >>> necessary(r"(?i)cannot import")
    frozenset()
    """
    flags = re.compile(pattern).flags
    return _of(_parser.parse(pattern), fold=bool(flags & re.IGNORECASE)) or frozenset()


def _weak(anchor: str) -> bool:
    return bool(re.fullmatch(r"[\w.+\-]{1,12}", anchor))


def searched(anchors: tuple[str, ...], pattern: str) -> tuple[str, ...]:
    """What to search for in place of `anchors`: rarer texts where the pattern asks for them.

    >>> searched(("torch",), "module 'torch' has no attribute")
    ("module 'torch' has no attribute",)
    """
    if not any(_weak(anchor) for anchor in anchors):
        return anchors
    texts = necessary(pattern)
    shortest = min(map(len, texts), default=0)
    if shortest < LEAST or len(texts) > MOST or any(t.encode().strip() in COMMON for t in texts):
        return anchors
    return tuple(sorted(texts)) if shortest >= min(map(len, anchors)) else anchors
