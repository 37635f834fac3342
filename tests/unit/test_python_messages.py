"""The messages of Python sources, as the harvest of the error index reads them."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest


def load() -> ModuleType:
    sys.path.append(str(Path(__file__).parents[2] / "tools"))
    try:
        return importlib.import_module("python_messages")
    finally:
        sys.path.pop()


PYTHON = load()
HOLE = PYTHON.HOLE


def found(source: str) -> list[tuple[str, list[str]]]:
    """Exception and texts of each message of a source."""
    tree = ast.parse(source)
    rows = PYTHON.messages(tree, PYTHON.Module(tree, {}))
    return [(kind, texts) for _, _, kind, _, texts in rows]


def test_the_text_of_the_own_branch_counts() -> None:
    source = """
def check(code, url):
    if code == 404:
        message = f"nothing at {url}"
        raise OSError(message)
    elif code == 401:
        message = "no token"
        raise OSError(message)
"""
    assert found(source) == [("OSError", [f"nothing at {HOLE}"]), ("OSError", ["no token"])]


def test_names_of_another_function_say_nothing() -> None:
    source = """
def one():
    place = "here"
    return place

def two(place):
    raise ValueError(f"not in {place}", place)
"""
    assert found(source) == [("ValueError", [f"not in {HOLE} {HOLE}"])]


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        pytest.param(
            "_format(GatedRepoError, 'no entry', response)", "GatedRepoError", id="helper"
        ),
        pytest.param("errors.GatedRepoError('no entry', r)", "GatedRepoError", id="class"),
    ],
)
def test_a_helper_makes_the_exception_that_it_is_passed(raised: str, kind: str) -> None:
    assert found(f"raise {raised}") == [(kind, [f"no entry {HOLE}"])]


def test_what_a_helper_makes_is_not_guessed() -> None:
    assert found("raise build(message, response)") == []


def test_the_words_that_a_class_adds_are_its_messages() -> None:
    source = """
class FieldError(BaseError):
    def __init__(self, field, cause):
        text = f"wrong value of field {field}:"
        text += f" {cause}"
        super().__init__(text)
"""
    assert found(source) == [("FieldError", [f"wrong value of field {HOLE}: {HOLE}"])]
