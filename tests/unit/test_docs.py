from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import jsonschema

from dsdoctor.cli.main import COMMANDS
from dsdoctor.model.facts.machine import OsInfo
from dsdoctor.model.report import Report
from dsdoctor.model.schema import report_schema, snapshot_schema
from dsdoctor.model.snapshot import of
from dsdoctor.report import machine

ROOT = Path(__file__).parent.parent.parent


def test_generated_pages_are_fresh() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for path, text in module.pages().items():
        # the whole text: the difference is what a failure should show
        assert path.read_text(encoding="utf-8") == text, path.name
    assert module.drifted() == []


def test_documents_keep_their_schemas() -> None:
    system = OsInfo(system="Linux", release="6", machine="x86_64", hostname="n")
    jsonschema.validate(json.loads(of([system]).to_json()), json.loads(snapshot_schema()))
    jsonschema.validate(json.loads(machine.json(Report())), json.loads(report_schema()))


def test_the_readme_names_only_commands_that_exist() -> None:
    text = (ROOT / "README.md").read_text()
    named = set(re.findall(r"^dsdoctor (\w+) .*#", text, re.MULTILINE))
    assert named <= set(COMMANDS)
    assert named
