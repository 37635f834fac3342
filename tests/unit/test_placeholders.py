"""No text that a reader sees has the name of a variable in the place of its value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import dsdoctor
import dsdoctor_checks
from dsdoctor import testing
from dsdoctor.api import warn
from dsdoctor.testing import _PLACEHOLDER

#: Calls whose first argument is a message, and keywords that are texts.
MESSAGES = {"ok", "warn", "fail", "skip", "UsageError", "Impossible", "Tell"}
#: Calls whose texts are filled in with what a line of a log says.
TEMPLATES = {"Signature", "TracebackRule"}
TEXTS = {"hint", "effect", "message", "why", "title", "help", "detail"}


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Strings that are shown as they stand: parts of an f-string that it fills in are none."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else None
        name = call.func.id if isinstance(call.func, ast.Name) else name
        if name in TEMPLATES:
            continue
        shown = [word.value for word in call.keywords if word.arg in TEXTS]
        shown += call.args[:1] if name in MESSAGES else []
        for value in shown:
            for part in ast.walk(value):
                if isinstance(part, ast.Call):  # `"{x}".format(x=1)`
                    break
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


@pytest.mark.parametrize("package", [dsdoctor, dsdoctor_checks], ids=["engine", "built-in pack"])
def test_no_f_string_lacks_its_f(package: object) -> None:
    root = Path(str(getattr(package, "__file__", ""))).parent
    found = [
        f"{path.relative_to(root)}:{line}: {text}"
        for path in sorted(root.rglob("*.py"))
        for line, text in texts(ast.parse(path.read_text(encoding="utf-8")))
        if _PLACEHOLDER.search(text)
    ]
    assert not found


def test_the_gate_sees_one() -> None:
    tree = ast.parse("warn(f'{x} is bad', effect='', hint='set `{variable}` to ' 'one')")
    assert [text for _, text in texts(tree) if _PLACEHOLDER.search(text)] == [
        "set `{variable}` to one"
    ]


def test_a_pack_that_tests_itself_is_told() -> None:
    found = warn("`x` is bad", effect="it fails", hint="set `{variable}`")
    with pytest.raises(AssertionError, match="placeholder was not filled in"):
        testing._assert_form(found)
