"""Every test function that stands in a file is collected, or the run ends before it begins."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path


def functions_in(source: str) -> Counter[str]:
    """Names of the test functions of a module, and of the methods of its test classes.

    A name that stands twice counts twice: Python keeps only the last, so one test is lost.

    >>> functions_in("def test_a(): ...\\nif x:\\n    def test_a(): ...\\nclass TestB:\\n    def test_c(self): ...")
    Counter({'test_a': 2, 'TestB.test_c': 1})
    """
    return Counter(_names(ast.parse(source), ""))


def _names(node: ast.AST, prefix: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            if child.name.startswith("test"):
                yield prefix + child.name
        elif isinstance(child, ast.ClassDef):
            if child.name.startswith("Test"):
                yield from _names(child, f"{prefix}{child.name}.")
        else:
            yield from _names(child, prefix)


def lost(root: Path, within: Iterable[Path], collected: dict[Path, set[str]]) -> list[str]:
    """Test functions in files below `within` that were not collected, as `FILE: NAME`.

    Args:
        root: what paths are shown relative to.
        within: files and folders that pytest was asked for.
        collected: file to the names of its collected tests.
    """
    files = {
        path
        for place in within
        for path in (place.rglob("*.py") if place.is_dir() else [place])
        if path.suffix == ".py"
    }
    found = []
    for path in sorted(files):
        have = Counter(collected.get(path, set()))
        missing = functions_in(path.read_text(encoding="utf-8")) - have
        found += [f"{path.relative_to(root)}: {name}" for name in missing]
    return found
