"""Children that end without unloading torch leave none of its temporary folders."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import pytest

from dsdoctor.api import DeepSpeedInstall
from dsdoctor.host import HostError, LocalHost
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes.config_verdict import config_verdict
from dsdoctor.probes.torch_live import start_torch

CHOICE = PatientChoice(executable=sys.executable, chosen_by="test", why="it runs the tests")
#: A package that keeps a folder until it is unloaded, and says that it was imported.
KEEPS = """
import os, tempfile
KEPT = tempfile.TemporaryDirectory()
open(os.environ["IMPORTED"], "w").close()
__version__ = "2.9.1+cpu"
class version:
    cuda = hip = None
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files of a job whose torch and deepspeed keep one."""
    for name in ("torch", "deepspeed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(KEEPS, encoding="utf-8")
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("IMPORTED", str(tmp_path / "imported"))
    return folder


def test_imports_of_torch(temporary: Path) -> None:
    host = LocalHost({**os.environ, "PYTHONPATH": str(temporary.parent)})
    start_torch(host, CHOICE, RunNeeds(), 20.0)
    assert (temporary.parent / "imported").exists()
    assert list(temporary.iterdir()) == []


def test_a_config_that_deepspeed_is_asked_about(temporary: Path) -> None:
    (temporary.parent / "ds.json").write_text("{}", encoding="utf-8")
    run = RunNeeds(config_path="ds.json", cwd=str(temporary.parent))
    with contextlib.suppress(HostError):  # this deepspeed has no config
        config_verdict.function(LocalHost(), CHOICE, DeepSpeedInstall(version="0.19.8"), run)
    assert (temporary.parent / "imported").exists()
    assert list(temporary.iterdir()) == []
