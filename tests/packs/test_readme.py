"""checks/README.md: what it shows passes ruff and runs as it stands."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dsdoctor import api, packs, testing
from dsdoctor.reference import fact_pages
from tests.support.command import clean_environment, dsdoctor
from tests.unit.test_conformance import FAMILIES

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "checks" / "README.md").read_text()
CODE = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
CONDITION, TEST, PROBE, SIGNATURE, FIX = CODE


def python(*argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *argv], cwd=cwd, capture_output=True, text=True, check=False, timeout=500
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "checks"
    made.mkdir()
    (made / "acme_scratch_full.py").write_text(CONDITION)
    return made


@pytest.mark.parametrize("number", range(len(CODE)))
def test_the_code_passes_ruff(tmp_path: Path, number: int) -> None:
    (tmp_path / "acme.py").write_text(CODE[number])
    options = ["--isolated", "--line-length", "100"]
    rules = ["--select", "E,F,I,UP,B,ANN,D1,SIM", "--ignore", "D100,D103"]
    for argv in (["check", *rules], ["format", "--check"]):
        done = python("-m", "ruff", *argv, *options, "acme.py", cwd=tmp_path)
        assert done.returncode == 0, done.stdout


def test_the_condition_is_judged_by_the_command_shown(folder: Path, tmp_path: Path) -> None:
    (line,) = re.findall(r"```sh\ndsdoctor (.*)\n```", TEXT)
    done = dsdoctor(*line.split(), "--format", "json", env=clean_environment(tmp_path), cwd=folder)
    (finding,) = done.report["findings"]
    assert finding["id"] == "ACME001"
    assert finding["status"] in ("ok", "warn", "skip")


def test_its_test_passes(folder: Path) -> None:
    (folder / "test_scratch.py").write_text(TEST)
    done = python("-m", "pytest", "-q", "test_scratch.py", cwd=folder)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_all_parts_load_as_packs(folder: Path) -> None:
    (folder / "acme_scratch_full.py").write_text(
        CONDITION + "\n\n" + SIGNATURE.partition("\n\n")[2]
    )
    (folder / "acme_license.py").write_text(PROBE)
    (folder / "acme_create_scratch.py").write_text(FIX)
    registry = packs.load([str(folder)])
    assert registry.problems == []
    unit = registry.get("acme-scratch-full")
    assert unit.hint == "remove old checkpoints from the scratch disk"
    for signature in unit.signatures:
        testing.assert_signature(signature)
    assert registry.fix("acme-create-scratch").title == "Creates the scratch folder"
    (probe,) = [one for one in registry.probes if one.function.__name__ == "license"]
    host = testing.FakeHost(files={"/etc/acme/license": "expires in 12 days"})
    assert testing.read(probe, host).days == 12
    assert testing.read(probe, testing.FakeHost()).why.value == "absent"


def test_the_table_of_families_is_that_of_the_pack() -> None:
    rows = dict(re.findall(r"DSD(\d+)nn \| (\w+)", TEXT))
    assert rows == {str(number): name for number, name in enumerate(FAMILIES, 1)}


#: What other packs need and the built-in one does not use, because its probes are the engine's.
FOR_PROBES = {"Fact", "Host", "HostError", "probe"}
#: What the decorators return.
DECORATED = {"Check", "Fix", "Probe"}


def test_the_api_exports_what_the_builtin_pack_uses_and_no_more() -> None:
    used = {
        alias.name
        for path in (ROOT / "checks" / "dsdoctor_checks").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "dsdoctor.api"
        for alias in node.names
    }
    exported = set(api.__all__)
    pages = fact_pages.pages(packs.load(builtin_only=True))
    parts = {part.name for page in pages if page.name in exported for part in page.parts}
    assert used <= exported
    assert exported >= FOR_PROBES
    assert exported - used - FOR_PROBES - DECORATED <= parts, "neither used nor part of a fact"
