"""A fix that a report prints is applied to the interpreter that was examined."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dsdoctor import interpreter
from dsdoctor.cli import smoke
from dsdoctor.cli.diagnose import command
from dsdoctor.model.smoke import SmokeCause, SmokeReport

NO_NINJA = "RuntimeError: Ninja is required to load C++ extensions\n"


def test_diagnose_names_the_interpreter(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text(NO_NINJA)
    words = [str(log), "--here", "--python", sys.executable]
    said = CliRunner().invoke(command, words, standalone_mode=False).output
    assert f"`dsdoctor fix install-ninja --python {sys.executable}`" in said
    document = CliRunner().invoke(command, [*words, "--format", "json"]).output
    assert f"install-ninja --python {sys.executable}" not in document
    assert "`dsdoctor fix install-ninja`" in CliRunner().invoke(command, [str(log)]).output


@pytest.mark.parametrize("python", [None, "/opt/my env/bin/python"])
def test_smoke_names_the_interpreter(python: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    cause = SmokeCause(
        condition="jit-build-ninja-missing", title="t", message="m", fixes=("install-ninja",)
    )
    report = SmokeReport(verdict="fail", summary="it failed", causes=(cause,))

    def execute(*words: Any, **_: Any) -> int:
        words[4](report)
        return 1

    monkeypatch.setattr(smoke, "execute", execute)
    monkeypatch.setattr(
        interpreter, "choose", lambda *_: types.SimpleNamespace(executable=sys.executable)
    )
    words = ["--cpu", "1", *(["--python", python] if python else [])]
    done = CliRunner().invoke(smoke.command, words, standalone_mode=False)
    end = " --python '/opt/my env/bin/python'" if python else ""
    assert f"fix: `dsdoctor fix install-ninja{end}`" in done.output
