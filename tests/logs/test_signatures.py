"""Every signature: examples match, near-misses do not, and no pattern is slow."""

from __future__ import annotations

import re
import time

import pytest

from dsdoctor import packs
from dsdoctor.logs import Row, signatures_of

ROWS = signatures_of(packs.load(builtin_only=True))
IDS = [f"{row[0]}-{number}" for number, row in enumerate(ROWS)]


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_examples_and_near_misses(row: Row) -> None:
    signature = row[4]
    pattern = re.compile(signature.pattern)
    assert len(set(signature.examples)) >= 2, "two wordings, of different versions where they exist"
    assert signature.not_examples
    for example in signature.examples:
        assert any(anchor in example for anchor in signature.anchors), example
        assert pattern.search(example), example
    for near in signature.not_examples:
        hit = any(anchor in near for anchor in signature.anchors) and pattern.search(near)
        assert not hit, near


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_near_miss_reaches_the_pattern(row: Row) -> None:
    """A near-miss without an anchor proves nothing of the pattern."""
    signature = row[4]
    if all(re.search(signature.pattern, anchor) for anchor in signature.anchors):
        return  # every anchor matches by itself, so what holds one is no miss
    assert any(a in near for near in signature.not_examples for a in signature.anchors)


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_no_pattern_is_slow(row: Row) -> None:
    signature = row[4]
    pattern = re.compile(signature.pattern)
    anchor = signature.anchors[0]
    # patterns see at most scan.LONGEST characters; a megabyte is far beyond that
    for text in ("a" * 1_000_000, " " * 1_000_000):
        start = time.perf_counter()
        pattern.search(text)
        assert time.perf_counter() - start < 1.0
    text = ((anchor + " ") * 4000)[:4000]
    start = time.perf_counter()
    for _ in range(10):
        pattern.search(text)
    assert time.perf_counter() - start < 1.0


def test_conditions_have_a_page() -> None:
    for name, title, hint, _, _ in ROWS:
        assert re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", name)
        assert title
        assert hint
