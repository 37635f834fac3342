"""Every alternative of a pattern is reachable: a line that it matches holds one of the anchors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from dsdoctor import packs
from dsdoctor.logs import Row, signatures_of

try:
    from re import _constants as sre  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_constants as sre
    import sre_parse as parser

ROWS = signatures_of(packs.load(builtin_only=True))
IDS = [f"{row[0]}-{number}" for number, row in enumerate(ROWS)]
#: Most lines made of one pattern.
ENOUGH = 600
#: Stand for "any character", a digit, a blank and a letter: signs that no anchor holds.
ANY = "\N{BLACK SQUARE}"
SAMPLES = {
    sre.CATEGORY_DIGIT: "\N{ARABIC-INDIC DIGIT SEVEN}",
    sre.CATEGORY_SPACE: "\N{EM SPACE}",
    sre.CATEGORY_WORD: "\N{LATIN SMALL LETTER THORN}",
}


def _join(parts: list[list[str]]) -> list[str]:
    made = [""]
    for part in parts:
        made = [left + right for left in made for right in part][:ENOUGH]
    return made


def _one(op: Any, value: Any) -> list[str]:
    if op is sre.LITERAL:
        return [chr(value)]
    if op is sre.IN:
        return [_member(value)]
    if op is sre.BRANCH:
        return [text for branch in value[1] for text in _lines(branch)][:ENOUGH]
    if op is sre.SUBPATTERN:
        return _lines(value[3])
    if op in {sre.MAX_REPEAT, sre.MIN_REPEAT}:
        inner = _lines(value[2])
        return _join([inner] * value[0]) if value[0] else ["", *inner]
    if op in {sre.ANY, sre.NOT_LITERAL}:
        return [ANY]
    return [""]  # look-arounds and positions take no room


def _member(items: Any) -> str:
    if items[0][0] is sre.NEGATE:
        return ANY
    op, value = items[0]
    if op is sre.LITERAL:
        return chr(value)
    if op is sre.RANGE:
        return chr(value[0])
    return SAMPLES.get(value, ANY)


def _lines(tree: Any) -> list[str]:
    return _join([_one(op, value) for op, value in tree])


def unreachable(row: Row) -> Iterator[str]:
    """Lines that the pattern matches and that no anchor lets through."""
    signature = row[4]
    pattern = re.compile(signature.pattern)
    for line in _lines(parser.parse(signature.pattern)):
        if pattern.search(line) and not any(anchor in line for anchor in signature.anchors):
            yield line


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_every_alternative_has_its_anchor(row: Row) -> None:
    lost = list(unreachable(row))
    # patterns that ignore case are anchored on the spellings that the products use
    if "(?i" in row[4].pattern:
        anchors = [anchor.lower() for anchor in row[4].anchors]
        lost = [line for line in lost if not any(a in line.lower() for a in anchors)]
    assert not lost, lost[:5]


def test_the_check_sees_a_lost_alternative() -> None:
    row = ROWS[0]
    signature = row[4].__class__(
        anchor="disk full", pattern="disk full|no space", examples=(), not_examples=()
    )
    assert list(unreachable((*row[:4], signature))) == ["no space"]
