from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from dsdoctor.cli.main import COMMANDS
from dsdoctor.cli.progress import Progress
from dsdoctor.model.facts.machine import OsInfo
from dsdoctor.model.report import Report
from dsdoctor.model.schema import fact_types, report_schema, snapshot_schema
from dsdoctor.model.snapshot import of
from dsdoctor.report import machine_readable

ROOT = Path(__file__).parent.parent.parent


def test_generated_pages_are_fresh() -> None:
    # in a process of its own: click keeps the help option of a command as it was first asked for,
    # and other tests call commands without the group that adds `-h`
    made = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert (made.returncode, made.stdout) == (0, ""), made.stdout + made.stderr


@pytest.mark.system
def test_the_man_page_is_sound_and_names_every_command_and_option() -> None:
    path = ROOT / "docs" / "man" / "dsdoctor.1"
    shown = subprocess.run(
        ["groff", "-man", "-Tutf8", "-P-c", "-P-b", "-P-u", "-ww", "-rLL=200n", path],
        capture_output=True,
        check=True,
        text=True,
    )
    assert shown.stderr == ""
    text = re.sub(r"\s+", " ", shown.stdout)
    words = re.findall(
        r"^  (-\w, )?(--[\w-]+)", (ROOT / "docs" / "cli.md").read_text(), re.MULTILINE
    )
    assert len(words) > 100
    assert [option for _, option in words if option not in text] == []
    assert [name for name in COMMANDS if f"dsdoctor {name} [OPTIONS]" not in text] == []
    assert "dsdoctor run [OPTIONS] -- CMD ARGS…" in text


def test_documents_keep_their_schemas() -> None:
    system = OsInfo(system="Linux", release="6", machine="x86_64", hostname="n")
    jsonschema.validate(json.loads(of([system]).to_json()), json.loads(snapshot_schema()))
    jsonschema.validate(json.loads(machine_readable.json(Report())), json.loads(report_schema()))


def test_the_schema_of_a_snapshot_has_every_fact() -> None:
    files = (ROOT / "dsdoctor" / "model" / "facts").glob("*.py")
    classes = {
        node.name
        for path in files
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and "Fact" in map(ast.unparse, node.bases)
    }
    stated = {kind.__name__ for kind in fact_types().values()}
    assert len(classes) > 50
    assert classes - stated <= {"Fact"}
    document = json.loads(snapshot_schema())["$defs"]["Snapshot"]["properties"]
    assert set(document["facts"]["properties"]) == set(fact_types())


def test_the_readme_names_only_commands_that_exist() -> None:
    text = (ROOT / "README.md").read_text()
    named = set(re.findall(r"^dsdoctor (\w+) .*#", text, re.MULTILINE))
    assert named <= set(COMMANDS)
    assert named


def test_no_page_has_a_conflict_marker() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "mkdocs.yml"]
    marked = [
        p.name for p in pages if re.search(r"^(<<<<<<< |>>>>>>> )", p.read_text(), re.MULTILINE)
    ]
    assert len(pages) > 10
    assert marked == []


def test_the_pages_of_errors_are_in_the_navigation() -> None:
    named = set(re.findall(r"errors/[\w-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    assert named == {f"errors/{page.name}" for page in (ROOT / "docs" / "errors").glob("*.md")}


def test_the_line_of_progress_names_what_takes_long_and_fits() -> None:
    progress = Progress(enabled=False)
    assert progress._text() == "judging"
    for name in ("network", "storage", "nvidia_smi", "torch_facts"):
        progress.update(name, ended=False)
    assert progress._text() == "asking nvidia-smi, starting torch and 2 more"
    progress.update("network", ended=True)
    progress.update("storage", ended=True)
    assert progress._text() == "asking nvidia-smi, starting torch"


def test_the_tests_that_pages_name_exist() -> None:
    pages = [*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    named = set(re.findall(r"\b(?:tests|benchmarks)/[\w/]+\.(?:py|sh|md)\b", text))
    assert len(named) > 50
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
