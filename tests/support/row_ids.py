"""Ids of rows without one: what a value says, in place of the name of its parameter and a number.

A value that does not fit in an id has none: its row needs `pytest.param(..., id="...")`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import msgspec

#: Characters of one value.
LONGEST = 60
#: Values of a list, or fields of a struct, that are shown.
MOST = 6
#: Text of an object that has none of its own; it differs from run to run.
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class NoWordsError(ValueError):
    """A value does not say in a few words what its row is about."""


def words_of(value: object) -> str | None:
    r"""A value in a few words; None where pytest's own words are as good.

    >>> words_of(("check", "--gpus", "x")), words_of({"stage": 3, "fp16": True}), words_of([])
    ('check --gpus x', 'stage=3 fp16=True', 'none')
    >>> words_of("text"), words_of(3), words_of(b"raw"), words_of("two\nlines")
    (None, None, 'raw', 'two lines')

    Raises:
        NoWordsError: it is too long, a function without a name or an object without a text.
    """
    if isinstance(value, (int, float, bool, type(None), type)):
        return None
    if callable(value):
        if getattr(value, "__name__", "<lambda>") == "<lambda>":
            raise NoWordsError(f"{value} has no name")
        return None
    if isinstance(value, str) and len(value) <= LONGEST and "\n" not in value:
        return None
    said = " ".join(_said(value, 0).split())
    if len(said) > LONGEST:
        raise NoWordsError(f"`{said[:LONGEST].rstrip()}…` has more than {LONGEST} characters")
    if ADDRESS.search(said):
        raise NoWordsError(f"`{said}` is an address")
    return said


def _said(value: object, depth: int) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Mapping):
        rows = [f"{key}={_said(inner, depth + 1)}" for key, inner in [*value.items()][:MOST]]
        return _listed(rows, depth)
    if isinstance(value, (tuple, list, set, frozenset)):
        return _listed([_said(inner, depth + 1) for inner in [*value][:MOST]], depth)
    fields = _changed(value)
    if fields is not None:
        rows = [f"{name}={_said(inner, depth + 1)}" for name, inner in [*fields.items()][:MOST]]
        return f"{type(value).__name__}{f' {_listed(rows, depth)}' if rows else ''}"
    return getattr(value, "__name__", None) or str(value)


def _listed(rows: list[str], depth: int) -> str:
    joined = " ".join(rows)
    return (joined or "none") if not depth else f"({joined})"


def _changed(value: Any) -> dict[str, object] | None:
    """The fields of a struct that are not the default; None if the value is no struct."""
    if isinstance(value, msgspec.Struct):
        kept = {
            one.name: getattr(value, one.name)
            for one in msgspec.structs.fields(value)
            if one.default is msgspec.NODEFAULT or getattr(value, one.name) != one.default
        }
        return {name: inner for name, inner in kept.items() if inner not in ({}, (), [], None, "")}
    if dataclasses.is_dataclass(value):
        return {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
    return None
