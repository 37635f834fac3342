"""benchmarks/coverage.md says what is there, and is not stale."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from dsdoctor import packs
from dsdoctor.cli.main import COMMANDS

ROOT = Path(__file__).parent.parent.parent
CONDITIONS = {unit.condition.name for unit in packs.load(builtin_only=True)}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = ROOT / "benchmarks" / "coverage.py"
    spec = importlib.util.spec_from_file_location("coverage_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["coverage_page"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_every_condition_named_exists(script: ModuleType) -> None:
    rows = script.parse(script.ROWS.read_text())
    named = {name for row in rows for name in row.conditions if name not in row.expected}
    assert named <= CONDITIONS, sorted(named - CONDITIONS)
    assert {name for row in rows for name in row.commands} <= COMMANDS.keys()


def test_what_is_left_out_says_why(script: ModuleType) -> None:
    rows = script.parse(script.ROWS.read_text())
    assert len(rows) > 100
    assert [row.check for row in rows if not row.conditions and len(row.note) < 12] == []
    assert len({row.check for row in rows}) == len(rows)


def test_the_page_is_fresh(script: ModuleType) -> None:
    rows = script.parse(script.ROWS.read_text())
    words = "run `python benchmarks/coverage.py`"
    assert script.TARGET.read_text() == script.render(rows), words


def test_a_condition_that_is_not_there_is_said_so(script: ModuleType) -> None:
    (row,) = script.parse("A | b | no-such-thing? driver-missing | n")
    page = script.render([row])
    assert "no-such-thing (not there yet)" in page
    assert "[driver-missing](../docs/conditions/driver-missing.md)" in page
    with pytest.raises(ValueError, match="line 2"):
        script.parse("A | b | - | why\nA | b\n")
