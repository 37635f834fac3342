"""Every condition obeys the rules that CONTRIBUTING.md names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import dsdoctor_checks
from dsdoctor import packs
from dsdoctor.api import Fact, Missing, Status, Why
from dsdoctor.judge import judge
from dsdoctor.model import snapshot as snapshots
from dsdoctor.packs.registry import FixUnit, Unit, needs

REGISTRY = packs.load(builtin_only=True)
UNITS = list(REGISTRY)
FAMILIES = [
    "driver",
    "cuda",
    "torch",
    "ops",
    "precision",
    "gpu",
    "topology",
    "nccl",
    "python",
    "host",
    "container",
    "launch",
    "config",
    "memory",
    "storage",
    "cluster",
    "training",
]
HEADINGS = ["## Why it matters", "## What to do", "## References"]
FIXES = REGISTRY.fixes
TESTS = Path(__file__).parent.parent


def by_name(unit: Unit) -> str:
    return unit.condition.name


def test_the_builtin_pack_loads_whole() -> None:
    assert REGISTRY.problems == []
    assert sum(unit.check is not None for unit in UNITS) >= 30


@pytest.mark.parametrize("unit", UNITS, ids=by_name)
def test_identity(unit: Unit) -> None:
    condition = unit.condition
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", condition.name)
    assert re.fullmatch(r"DSD\d{3,4}", condition.id)
    assert unit.family in FAMILIES
    assert int(condition.id[3:]) // 100 == FAMILIES.index(unit.family) + 1
    assert re.fullmatch(r"\d+\.\d+", condition.since)
    assert set(condition.fixes) <= set(FIXES)
    assert unit.check is not None or unit.signatures or condition.names


@pytest.mark.parametrize("unit", UNITS, ids=by_name)
def test_page_has_title_and_headings(unit: Unit) -> None:
    assert 10 <= len(unit.title) <= 110
    assert [line for line in unit.page.splitlines() if line.startswith("## ")] == HEADINGS


@pytest.mark.parametrize("unit", UNITS, ids=by_name)
def test_ties_name_conditions_that_exist(unit: Unit) -> None:
    for name in (*unit.condition.leads_to, *unit.condition.narrower):
        assert REGISTRY.find(name) is not None, name
    for signature in unit.signatures:
        for name in signature.masks:
            assert REGISTRY.find(name) is not None, name


@pytest.mark.parametrize("unit", list(FIXES.values()), ids=lambda unit: str(unit.fix.name))
def test_fix(unit: FixUnit) -> None:
    name = unit.fix.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", name)
    assert 10 <= len(unit.title) <= 110
    headings = [line for line in unit.page.splitlines() if line.startswith("## ")]
    assert headings == ["## What it does", "## Undo"]
    assert any(name in unit.condition.fixes for unit in UNITS), "no condition names it"
    golden = TESTS / "fixes" / "golden"
    assert list(golden.glob(f"{name}.*.json")) or list(golden.glob(f"{name}.json"))


CHECKED = [unit for unit in UNITS if unit.check is not None]


@pytest.mark.parametrize("unit", CHECKED, ids=by_name)
@pytest.mark.parametrize("why", list(Why), ids=lambda why: str(why.value))
def test_a_check_survives_every_fact_missing(unit: Unit, why: Why) -> None:
    assert unit.check is not None
    kinds = [need.kind for need in needs(unit.check.function) if issubclass(need.kind, Fact)]
    lacking = {kind: Missing(why=why, detail="not there") for kind in kinds}
    report = judge(snapshots.of([], lacking), [unit], REGISTRY)
    # a call that hung or broke may be the very fault that a check names
    alarming = {Status.CRASH} if why in (Why.TIMEOUT, Why.BROKEN) else {Status.CRASH, Status.FAIL}
    bad = [f for f in report.findings if f.status in alarming]
    assert bad == []


@pytest.mark.parametrize("unit", CHECKED, ids=by_name)
def test_a_check_has_tests(unit: Unit) -> None:
    module = unit.condition.name.replace("-", "_")
    texts = [path.read_text() for path in (TESTS / "checks").rglob("test_*.py")]
    assert any(re.search(rf"\b{module}\b", text) for text in texts)


def test_a_finding_on_nothing_never_fails() -> None:
    report = judge(snapshots.of([]), UNITS, REGISTRY)
    assert [f.condition for f in report.findings if f.status in (Status.FAIL, Status.CRASH)] == []


def test_no_text_of_a_finding_shows_a_field_that_was_not_filled_in() -> None:
    checks = Path(dsdoctor_checks.__file__).parent
    unfilled = [
        f"{path.name}:{text.lineno}"
        for path in checks.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") != "Signature"
        for keyword in call.keywords
        if keyword.arg in ("hint", "effect")
        for text in _plain_texts(keyword.value)
        if re.search(r"\{[a-z_]+\}", str(text.value))
    ]
    assert unfilled == []


def _plain_texts(value: ast.expr) -> Iterator[ast.Constant]:
    """The string literals of an expression that are not parts of an f-string."""
    inside = {
        id(part)
        for node in ast.walk(value)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
    }
    for node in ast.walk(value):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in inside
        ):
            yield node
