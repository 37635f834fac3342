"""Patterns that are compiled when they are first used."""

from __future__ import annotations

import re

import pytest

from dsdoctor import lazy_regex
from dsdoctor.lazy_regex import lazy


def test_it_is_compiled_once_and_on_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def compiled(pattern: str, flags: int) -> re.Pattern[str]:
        made.append(pattern)
        return re.compile(pattern, flags)

    monkeypatch.setattr(lazy_regex, "re", type("Module", (), {"compile": staticmethod(compiled)}))
    pattern = lazy(r"rank (\d+)")
    assert made == []
    assert pattern.search("of rank 12") is not None
    assert pattern.sub("x", "rank 1, rank 2") == "x, x"
    assert made == [r"rank (\d+)"]


def test_it_answers_as_the_pattern_does() -> None:
    pattern, plain = lazy("(?P<a>A)|b", re.IGNORECASE), re.compile("(?P<a>A)|b", re.IGNORECASE)
    assert [m.span() for m in pattern.finditer("xaB")] == [m.span() for m in plain.finditer("xaB")]
    assert (pattern.pattern, pattern.groupindex) == (plain.pattern, plain.groupindex)
    assert pattern.fullmatch("a") is not None
    assert pattern.match("x") is None
    assert lazy(rb"\d").findall(b"a1b2") == [b"1", b"2"]


def test_a_wrong_pattern_is_an_error_on_first_use() -> None:
    with pytest.raises(re.error):
        lazy("(").search("")
