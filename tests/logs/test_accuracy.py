"""The section on diagnosis in docs/accuracy.md is made from the committed figures."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_section_is_what_the_script_makes() -> None:
    spec = importlib.util.spec_from_file_location(
        "diagnosis_accuracy", ROOT / "benchmarks/diagnosis_accuracy.py"
    )
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    figures = json.loads(script.FIGURES.read_text(encoding="utf-8"))
    section = script.page(figures)
    page = (ROOT / "docs/accuracy.md").read_text(encoding="utf-8")
    assert section.strip() in page, (
        "run: python benchmarks/diagnosis_accuracy.py --write docs/accuracy.md"
    )
    for run in figures["runs"]:
        named = [right for right, _ in run["levels"].values()]
        assert sum(named) <= run["right"] <= run["all"]
