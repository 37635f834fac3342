"""The examples in docstrings are true, in every module that has some."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent.parent
#: Folders of packages, relative to the folder that is on `sys.path`.
PACKAGES = (ROOT / "dsdoctor", ROOT / "checks" / "dsdoctor_checks")
#: Folders of scripts, which import each other by name.
SCRIPTS = ("tools", "tools/facts", "benchmarks", "docs")


def has_examples(path: Path) -> bool:
    return any(line.lstrip().startswith(">>> ") for line in path.read_text("utf-8").splitlines())


def module_names() -> list[str]:
    """Modules of the packages that have examples."""
    return [
        ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
        for package in PACKAGES
        for path in sorted(package.rglob("*.py"))
        if has_examples(path)
    ]


def scripts() -> list[str]:
    return [
        str(path.relative_to(ROOT))
        for folder in SCRIPTS
        for path in sorted((ROOT / folder).glob("*.py"))
        if has_examples(path)
    ]


def loaded(script: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path = ROOT / script
    monkeypatch.syspath_prepend(str(path.parent))
    spec = importlib.util.spec_from_file_location(f"doctest_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", module_names())
def test_examples_of_modules(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("script", scripts())
def test_examples_of_scripts(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = doctest.testmod(loaded(script, monkeypatch))
    assert result.attempted > 0
    assert result.failed == 0
