"""What a broken copy or a full disk left of packages; the child runs for real."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.api import ImportOutcome, Missing, ModuleImports, TorchLive, Why
from dsdoctor.interpreter import CHILDREN
from dsdoctor.probes import damaged_packages

CODE = "x = 1\n"
NONE = Missing(why=Why.NOT_ASKED, detail="")


def install(site: Path, name: str, files: dict[str, str], installer: str = "pip") -> None:
    meta = site / f"{name}-1.0.dist-info"
    meta.mkdir(parents=True)
    rows = []
    for file, text in files.items():
        path = site / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        rows.append(f"{file},sha256=abc,{len(text)}")
    rows += [f"{name}-1.0.dist-info/RECORD,,", "../../bin/tool,sha256=abc,9"]
    (meta / "RECORD").write_text("\n".join(rows))
    (meta / "INSTALLER").write_text(installer + "\n")


def compare(site: Path, *names: str) -> list[dict[str, Any]]:
    result = subprocess.run(
        [sys.executable, str(CHILDREN / "installed_files.py"), *names],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    lines = [line.partition("dsdoctor:")[2] for line in result.stdout.splitlines()]
    records: list[dict[str, Any]] = [json.loads(line) for line in lines if line]
    assert records.pop() == {"done": True}
    return records


WHOLE = {"pkg/__init__.py": CODE, "pkg/core.py": CODE, "pkg/_c.so": "ELF", "pkg/empty.py": ""}


def test_a_whole_package_and_one_that_is_not_asked_for(tmp_path: Path) -> None:
    install(tmp_path, "pkg", WHOLE)
    install(tmp_path, "other", {"other/__init__.py": CODE})
    (tmp_path / "other/__init__.py").write_text("")
    assert compare(tmp_path, "pkg", "absent") == []


@pytest.mark.parametrize(
    ("file", "text", "kind"),
    [
        pytest.param("pkg/core.py", None, "missing", id="gone"),
        pytest.param("pkg/core.py", "", "empty", id="0 bytes"),
        pytest.param("pkg/core.py", "\0" * len(CODE), "cut", id="zeros after a power failure"),
        pytest.param("pkg/_c.so", "EL", "cut", id="a library that is cut off"),
    ],
)
def test_damage(tmp_path: Path, file: str, text: str | None, kind: str) -> None:
    install(tmp_path, "pkg", WHOLE)
    if text is None:
        (tmp_path / file).unlink()
    else:
        (tmp_path / file).write_text(text)
    (record,) = compare(tmp_path, "pkg")
    assert record["package"] == "pkg"
    assert record["version"] == "1.0"
    assert record[kind] == [file]
    assert record["files"] == 1


@pytest.mark.parametrize(
    ("file", "text", "installer"),
    [
        pytest.param("pkg/core.py", "x = 12345\n", "pip", id="edited by its owner"),
        pytest.param("pkg/_c.so", "ELF, relinked", "conda", id="conda changes libraries"),
        pytest.param("pkg/tests/test_a.py", None, "pip", id="tests removed from a slim image"),
    ],
)
def test_changes_that_are_no_damage(
    tmp_path: Path, file: str, text: str | None, installer: str
) -> None:
    install(tmp_path, "pkg", {**WHOLE, "pkg/tests/test_a.py": CODE}, installer)
    if text is None:
        (tmp_path / file).unlink()
    else:
        (tmp_path / file).write_text(text)
    assert compare(tmp_path, "pkg") == []


def test_only_packages_of_an_import_that_failed_are_compared() -> None:
    fine = TorchLive(imported=ImportOutcome(ok=True))
    words = (
        "cannot import name 'X' from 'accelerate.utils' (/env/site-packages/accelerate/utils.py)"
    )
    failed = ImportOutcome(
        ok=False,
        error_type="ImportError",
        message=words,
        traceback='File "/env/lib/python3.11/site-packages/tokenizers/__init__.py", line 1',
    )
    modules = ModuleImports(names={"transformers:Trainer": failed, "peft": ImportOutcome(ok=True)})
    assert list(damaged_packages._tops(fine, NONE, ModuleImports())) == []
    assert set(damaged_packages._tops(fine, NONE, modules)) == {
        "transformers", "accelerate", "tokenizers", "X",
    }  # fmt: skip


@pytest.mark.parametrize("rows", ["pkg/core.py,sha256=abc,²", "pkg/core.py,s,6\n\0,,\n", '"'])
def test_a_list_that_is_damaged_itself_hides_no_other_package(tmp_path: Path, rows: str) -> None:
    install(tmp_path, "other", {"other/__init__.py": CODE})
    install(tmp_path, "pkg", {"pkg/core.py": CODE})
    (tmp_path / "pkg-1.0.dist-info/RECORD").write_text("pkg/core.py,,\n" + rows + "9" * 200_000)
    (tmp_path / "other/__init__.py").write_text("")
    assert [one["package"] for one in compare(tmp_path, "other", "pkg")] == ["other"]
