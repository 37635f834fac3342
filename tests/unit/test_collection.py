"""The gate of tests/conftest.py: a test that stands in a file runs, or the run says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.collection import functions_in, lost

ROOT = Path(__file__).parent.parent.parent


def test_methods_and_tests_under_a_condition_count() -> None:
    source = (
        "def test_a(): ...\n"
        "if x:\n    def test_b(): ...\n"
        "class TestC:\n    def test_d(self): ...\n"
        "def helper():\n    def test_inner(): ...\n"
    )
    assert set(functions_in(source)) == {"test_a", "test_b", "TestC.test_d"}


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("cases.py", "def test_in_a_file_that_pytest_does_not_read(): ..."),
        ("test_twice.py", "def test_a(): ...\ndef test_a(): ..."),
    ],
    ids=["a file whose name pytest does not take", "one name twice"],
)
def test_a_lost_test_is_named(tmp_path: Path, name: str, source: str) -> None:
    (tmp_path / name).write_text(source)
    collected = {tmp_path / "test_twice.py": {"test_a"}}
    (line,) = lost(tmp_path, [tmp_path], collected)
    assert line.startswith(f"{name}: test_")


def test_a_run_that_loses_a_test_ends_with_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import *")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "test_one.py").write_text("def test_one(): ...")
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--rootdir",
        str(tmp_path),
        "-p",
        "no:cacheprovider",
    ]
    argv += ["-c", "/dev/null", str(tmp_path)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout + done.stderr
    assert "build/test_one.py: test_one" in done.stderr + done.stdout
