r"""Which literals a pattern cannot match without: what a log is searched for first.

If a pattern ignores case, its literals are searched for in the four spellings that products use:
as written, in lower case, in upper case, and capitalized.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.anchors import COMMON

#: A bare word.
PLAIN = lazy(r"[A-Za-z_]*")
#: Most texts that a stretch of a pattern may match; beyond that, it is split.
MOST_SPELT = 24

_parser: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")

_Texts = frozenset[str]
_EMPTY: _Texts = frozenset({""})


class _Part(NamedTuple):
    """What a part of a pattern requires.

    Attributes:
        spelt: all texts that it can match, None if they are many.
        needed: texts of which every match contains at least one, None if none can be derived.
    """

    spelt: _Texts | None
    needed: _Texts | None


def _rarer(one: _Texts | None, other: _Texts | None) -> _Texts | None:
    if one is None or other is None:
        return one or other
    return max(one, other, key=lambda texts: (min(map(_rarity, texts)), -len(texts)))


def _rarity(text: str) -> int:
    """How rare a text is in the logs of healthy runs: single words are common."""
    word = text.strip()
    if not PLAIN.fullmatch(word):
        return len(text)
    return 1 if word.encode() in COMMON else len(word) // 2


def _class(members: Any) -> _Part:
    if len(members) > MOST_SPELT or any(str(name) != "LITERAL" for name, _ in members):
        return _Part(None, None)
    return _Part(frozenset(chr(code) for _, code in members), None)


def _branch(branches: Any) -> _Part:
    found = [_part_of(branch) for branch in branches]
    needed = [part.needed for part in found]
    spelt = [part.spelt for part in found]
    one = frozenset().union(*(t for t in spelt if t)) if all(spelt) else None
    return _Part(
        one if one and len(one) <= MOST_SPELT else None,
        frozenset().union(*(texts for texts in needed if texts)) if all(needed) else None,
    )


def _repeat(least: int, most: Any, body: Any) -> _Part:
    inner = _part_of(body)
    if least == 0:
        once = most == 1 and inner.spelt is not None
        return _Part((inner.spelt or _EMPTY) | _EMPTY if once else None, None)
    return inner if (least, most) == (1, 1) else _Part(None, inner.needed)


def _piece(name: str, argument: Any) -> _Part:
    if name == "LITERAL":
        return _Part(frozenset({chr(argument)}), None)
    if name == "IN":
        return _class(argument)
    if name == "SUBPATTERN":
        return _part_of(argument[3])
    if name == "ATOMIC_GROUP":
        return _part_of(argument)
    if name.endswith("_REPEAT"):
        return _repeat(*argument)
    if name == "BRANCH":
        return _branch(argument[1])
    if name in {"AT", "ASSERT", "ASSERT_NOT"}:  # they have no width
        looked = _part_of(argument[1]).needed if name == "ASSERT" else None
        return _Part(_EMPTY, looked)
    return _Part(None, None)


def _part_of(nodes: Any) -> _Part:
    best: _Texts | None = None
    run: _Texts = _EMPTY
    whole = True
    for operation, argument in nodes:
        part = _piece(str(operation), argument)
        best = _rarer(best, part.needed)
        if part.spelt is not None and len(run) * len(part.spelt) <= MOST_SPELT:
            run = frozenset(left + right for left in run for right in part.spelt)
            continue
        whole = False
        best, run = _rarer(best, _unless_empty(run)), part.spelt or _EMPTY
    return _Part(run if whole else None, _rarer(best, _unless_empty(run)))


def _unless_empty(run: _Texts) -> _Texts | None:
    return None if "" in run else run


def _spellings(text: str) -> frozenset[str]:
    return frozenset({text, text.lower(), text.upper(), text[:1].upper() + text[1:].lower()})


#: Literals derived beforehand, by pattern: parsing a thousand patterns takes half a second.
_PREPARED: dict[str, tuple[str, ...]] = {}


def prepare(path: Path) -> None:
    """Loads literals that were derived beforehand; an unreadable file costs only time."""
    with contextlib.suppress(OSError, ValueError):
        _PREPARED.update(msgspec.json.decode(path.read_bytes(), type=dict[str, tuple[str, ...]]))


def necessary(pattern: str) -> tuple[str, ...]:
    r"""Texts of which every match contains at least one; empty if none can be derived.

    >>> necessary(r"(?:cannot import name '\w+' from|has no attribute) 'torch")
    ("cannot import name '", 'has no attribute')
    >>> necessary(r"^\w+(?:Error|Exception): .{0,9}[Cc]heckpoint")
    ('Error: ', 'Exception: ')
    >>> necessary(r"(?i)No such import")
    ('NO SUCH IMPORT', 'No such import', 'no such import')
    """
    return _PREPARED.get(pattern) or _derived(pattern)


def derived(pattern: str) -> tuple[str, ...]:
    """Derives the result of `necessary` from the pattern itself."""
    found = _part_of(_parser.parse(pattern)).needed or frozenset()
    if "(?i" in pattern:
        found = frozenset(spelt for text in found for spelt in _spellings(text))
    return tuple(sorted(one for one in found if not any(o in one for o in found - {one})))


_derived = functools.cache(derived)  # a program that reads many logs needs them for each
