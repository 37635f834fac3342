"""What is uploaded: reproducible, complete, and accepted by the index's own check."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
pytestmark = [pytest.mark.packaging]


def build(kind: str, source: Path, out: Path) -> Path:
    """Builds with the hatchling of this environment; no network is needed."""
    env = {**os.environ, "SOURCE_DATE_EPOCH": "1577836800"}
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(out)]
    done = subprocess.run(
        command, cwd=source, env=env, capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = out.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_two_builds_of_the_wheel_are_equal_byte_for_byte(tmp_path: Path) -> None:
    first = build("wheel", ROOT, tmp_path / "first")
    second = build("wheel", ROOT, tmp_path / "second")
    assert digest(first) == digest(second)


def test_the_sdist_builds_the_same_wheel_as_the_checkout(tmp_path: Path) -> None:
    sdist = build("sdist", ROOT, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()
    wanted = ["LICENSE", "CHANGELOG.md", "tests/conftest.py", "docs/stability.md"]
    wanted += ["action.yml", ".pre-commit-hooks.yaml", "packaging/conda/recipe.yaml"]
    for name in wanted:
        assert (source / name).is_file(), name
    from_sdist = build("wheel", source, tmp_path / "again")
    assert digest(from_sdist) == digest(build("wheel", ROOT, tmp_path / "direct"))


def test_the_wheel_says_that_it_is_typed_and_passes_the_index_check(tmp_path: Path) -> None:
    wheel = build("wheel", ROOT, tmp_path)
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"dsdoctor/py.typed", "dsdoctor_checks/py.typed"} <= names
    assert not [name for name in names if name.startswith(("tests/", "docs/"))]
    sdist = build("sdist", ROOT, tmp_path)
    command = [sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
