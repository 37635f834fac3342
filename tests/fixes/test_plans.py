"""Every plan is what it was: `DSDOCTOR_UPDATE_GOLDEN=1 pytest tests/fixes/test_plans.py` writes them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import pytest

from dsdoctor.model.schema import plan_schema
from dsdoctor.report import repair
from tests.fixes.cases import CASES, plan

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("case", list(CASES))
def test_golden_plan(case: str) -> None:
    name, facts, request, run = CASES[case]
    document = plan(name, facts(), request, run)
    text = repair.as_json(document)
    jsonschema.validate(json.loads(text), json.loads(plan_schema()))
    shown = "\n".join(repair.render(made, 100) for made in document.plans)
    files = {f"{case}.json": text, f"{case}.txt": shown, f"{case}.sh": repair.shell(document.plans)}
    if os.environ.get("DSDOCTOR_UPDATE_GOLDEN"):
        for file, content in files.items():
            (GOLDEN / file).write_text(content, encoding="utf-8")
    for file, content in files.items():
        assert content == (GOLDEN / file).read_text(encoding="utf-8"), file
    if case.endswith("no-way"):
        assert document.impossible
        assert not document.plans
    else:
        (made,) = document.plans
        assert made.steps
        assert not document.impossible


def test_no_golden_plan_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(CASES)
