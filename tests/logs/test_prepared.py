"""The file from which a short log is diagnosed: the same knowledge as the modules have."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

import dsdoctor_checks
from dsdoctor import packs
from dsdoctor.logs import prepared, signatures_of
from dsdoctor.logs.knowledge import Known, Row
from dsdoctor.logs.products import products_in
from dsdoctor.packs import places

PACK = Path(dsdoctor_checks.__file__).parent


@pytest.fixture
def pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the pack, whose file is fresh."""
    docs = PACK.parents[1] / "docs"
    monkeypatch.syspath_prepend(docs)  # generate.py imports its neighbor
    made = runpy.run_path(str(docs / "generate.py"))
    copy = tmp_path / "pack"
    shutil.copytree(PACK, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / prepared.FILE).write_bytes(made["knowledge"](packs.load(builtin_only=True)))
    return copy


def bare(rows: Sequence[Row]) -> list[Row]:
    return [
        (
            *row[:4],
            msgspec.structs.replace(
                row[4],
                examples=(),
                not_examples=(),
                source=" ".join(sorted(products_in(row[4].source))),
            ),
        )
        for row in rows
    ]


def test_it_states_what_the_modules_state(pack: Path) -> None:
    found = prepared.read(pack)
    modules = signatures_of(packs.load(builtin_only=True))
    assert found is not None
    assert bare(found) == bare(modules)
    assert len(found.rules) == len(modules.rules) > 0
    assert found.boilerplate == modules.boilerplate
    assert (found.own, found.formerly) == (modules.own, modules.formerly)
    assert (found.observed, found.conditions) == (modules.observed, modules.conditions)
    assert [folder.name for folder in found.indexes] == ["_error_index"]
    assert all(isinstance(one, Known) for one in found.conditions.values())


@pytest.mark.parametrize("change", ["edited", "same-size", "added", "removed", "unreadable"])
def test_a_changed_pack_is_noticed(pack: Path, change: str) -> None:
    module = pack / "memory" / "gpu_oom.py"
    if change == "edited":
        module.write_text(module.read_text() + "\n")
    elif change == "same-size":
        module.write_text(module.read_text().replace("memory", "mammal", 1))
        later = module.stat().st_mtime + 3
        os.utime(module, (later, later))
    elif change == "added":
        (pack / "memory" / "new_one.py").write_text('"""New."""\n')
    elif change == "removed":
        module.unlink()
    else:
        (pack / prepared.FILE).write_text('{"file": 1}\n')
    assert prepared.read(pack) is None


def test_another_pack_is_not_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(places, "SYSTEM_FOLDER", tmp_path)
    monkeypatch.setattr(places, "user_folder", lambda: tmp_path / "none")
    monkeypatch.setattr(places, "entry_points", lambda _: [])
    assert places.only_builtin()
    (tmp_path / "acme_one.py").write_text("")
    assert not places.only_builtin()
    assert prepared.knowledge() is None
    assert prepared.knowledge(["/somewhere"]) is None


def test_a_short_log_loads_neither_checks_nor_the_fast_engine(tmp_path: Path) -> None:
    if prepared.read(PACK) is None:
        pytest.fail("logs.json is stale; run `python docs/generate.py`")
    log = tmp_path / "train.log"
    log.write_text("ModuleNotFoundError: No module named 'deepspeed'\n")
    script = (
        "import sys\n"
        f"sys.argv = ['dsdoctor', 'diagnose', {str(log)!r}]\n"
        "from dsdoctor.__main__ import main\n"
        "status = main()\n"
        "sys.stderr.write(' '.join(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=500
    )
    loaded = set(done.stderr.split())
    assert "deepspeed-missing" in done.stdout
    assert not loaded & {
        "dsdoctor_checks",
        "dsdoctor.packs.registry",
        "dsdoctor.judge",
        "hyperscan",
    }
    assert not loaded & {
        "dsdoctor.paste.environment",
        "dsdoctor.collect",
        "rich",
        "psutil",
        "hjson",
    }
