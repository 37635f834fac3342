r"""Which literal texts a pattern cannot match without.

Some anchors (`torch`, `P2P`) stand in every other line of a healthy log. Where the pattern itself
asks for rarer text, that is searched for instead, and the anchor is only compared afterwards.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from typing import Any, NamedTuple

from dsdoctor.logs.anchors import COMMON

#: A set of literals is worth using from this length on.
LEAST = 4
#: More alternatives than this cost more than they save.
MOST = 24
#: A bare word.
PLAIN = re.compile(r"[A-Za-z_]*")
#: Texts that a stretch of a pattern may stand for before it is cut.
MOST_SPELT = 8

_parser: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")

_Texts = frozenset[str]
_EMPTY: _Texts = frozenset({""})


class _Part(NamedTuple):
    """What a piece of a pattern asks for.

    Attributes:
        spelt: all texts that it can match, where they are few.
        needed: texts of which every match contains one, where they can be told.
    """

    spelt: _Texts | None
    needed: _Texts | None


def _better(one: _Texts | None, other: _Texts | None) -> _Texts | None:
    if one is None or other is None:
        return one or other
    return max(one, other, key=lambda texts: (min(map(_rarity, texts)), -len(texts)))


def _rarity(text: str) -> int:
    """How seldom a text is met in the log of a healthy run: a bare word is met often."""
    word = text.strip()
    if not PLAIN.fullmatch(word):
        return len(text)
    return 1 if word.encode() in COMMON else len(word) // 2


def _letter(code: int, *, fold: bool) -> _Part:
    text = chr(code)
    cased = fold and text.lower() != text.upper()
    return _Part(None if cased else frozenset({text}), None)


def _class(members: Any) -> _Part:
    if len(members) > MOST_SPELT or any(str(name) != "LITERAL" for name, _ in members):
        return _Part(None, None)
    return _Part(frozenset(chr(code) for _, code in members), None)


def _branch(branches: Any, *, fold: bool) -> _Part:
    found = [_of(branch, fold=fold) for branch in branches]
    needed = [part.needed for part in found]
    spelt = [part.spelt for part in found]
    one = frozenset().union(*(t for t in spelt if t)) if all(spelt) else None
    return _Part(
        one if one and len(one) <= MOST_SPELT else None,
        frozenset().union(*(texts for texts in needed if texts)) if all(needed) else None,
    )


def _repeat(least: int, most: Any, body: Any, *, fold: bool) -> _Part:
    inner = _of(body, fold=fold)
    if least == 0:
        once = most == 1 and inner.spelt is not None
        return _Part((inner.spelt or _EMPTY) | _EMPTY if once else None, None)
    return inner if (least, most) == (1, 1) else _Part(None, inner.needed)


def _piece(name: str, argument: Any, *, fold: bool) -> _Part:
    if name == "LITERAL":
        return _letter(argument, fold=fold)
    if name == "IN" and not fold:
        return _class(argument)
    if name == "SUBPATTERN":
        _, added, removed, body = argument
        ignore = (fold or bool(added & re.IGNORECASE)) and not removed & re.IGNORECASE
        return _of(body, fold=ignore)
    if name == "ATOMIC_GROUP":
        return _of(argument, fold=fold)
    if name.endswith("_REPEAT"):
        return _repeat(*argument, fold=fold)
    if name == "BRANCH":
        return _branch(argument[1], fold=fold)
    if name in {"AT", "ASSERT", "ASSERT_NOT"}:  # they take no room
        looked = _of(argument[1], fold=fold).needed if name == "ASSERT" else None
        return _Part(_EMPTY, looked)
    return _Part(None, None)


def _of(nodes: Any, *, fold: bool) -> _Part:
    best: _Texts | None = None
    run: _Texts = _EMPTY
    whole = True
    for operation, argument in nodes:
        part = _piece(str(operation), argument, fold=fold)
        best = _better(best, part.needed)
        if part.spelt is not None and len(run) * len(part.spelt) <= MOST_SPELT:
            run = frozenset(left + right for left in run for right in part.spelt)
            continue
        whole = False
        best, run = _better(best, _told(run)), part.spelt or _EMPTY
    return _Part(run if whole else None, _better(best, _told(run)))


def _told(run: _Texts) -> _Texts | None:
    return None if "" in run else run


def necessary(pattern: str) -> frozenset[str]:
    r"""Texts of which every match contains at least one; empty where none can be told.

    >>> sorted(necessary(r"(?:cannot import name '\w+' from|has no attribute) 'torch"))
    ["cannot import name '", 'has no attribute']
    >>> sorted(necessary(r"^\w+(?:Error|Exception): .{0,9}[Cc]heckpoint"))
    ['Error: ', 'Exception: ']
    >>> necessary(r"(?i)import")
    frozenset()
    """
    flags = re.compile(pattern).flags
    found = _of(_parser.parse(pattern), fold=bool(flags & re.IGNORECASE)).needed
    return found or frozenset()


def _weak(anchor: str) -> bool:
    return bool(re.fullmatch(r"[\w.+\-' ]{1,13}", anchor))


@functools.cache  # parsing is slow, and whoever reads many logs asks for each
def searched(anchors: tuple[str, ...], pattern: str) -> tuple[str, ...]:
    """What to search for in place of `anchors`: rarer texts where the pattern asks for them.

    >>> searched(("torch",), "module 'torch' has no attribute")
    ("module 'torch' has no attribute",)
    """
    if not any(_weak(anchor) for anchor in anchors):
        return anchors
    texts = necessary(pattern)
    if len(texts) > max(MOST, 2 * len(anchors)) or min(map(len, texts), default=0) < LEAST:
        return anchors
    if min(map(_rarity, texts)) < min(map(_rarity, anchors)):
        return anchors
    return tuple(sorted(one for one in texts if not any(o in one for o in texts - {one})))
