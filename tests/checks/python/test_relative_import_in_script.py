"""Rows of `relative-import-in-script`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dsdoctor.api import RunNeeds, ScriptImports
from dsdoctor.host import LocalHost
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.script_imports import script_imports
from dsdoctor.testing import assert_fail, judge
from dsdoctor_checks.python import relative_import_in_script

CHECK = relative_import_in_script.imports_fit_the_start
CHOICE = PatientChoice(executable=sys.executable, chosen_by="--python", why="a test")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("from .net import Net\n", "fail", id="only that import"),
        pytest.param("import os\nfrom . import net\n", "fail", id="after another one"),
        pytest.param("import os\nfrom net import Net\n", "ok", id="without a dot"),
        pytest.param(
            "try:\n    from .net import Net\nexcept ImportError:\n    from net import Net\n",
            "ok",
            id="both are tried",
        ),
        pytest.param("if __package__:\n    from . import a\n", "ok", id="in a package only"),
        pytest.param("__package__ = 'job'\nfrom . import net\n", "ok", id="the script names one"),
    ],
)
def test_scripts(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job/train.py").write_text(text)
    (tmp_path / "job/net.py").write_text("Net = a = None\n")
    command = parse_command(["torchrun", "job/train.py"])
    run = RunNeeds(command=command.argv, cwd=str(tmp_path))
    fact = script_imports.function(LocalHost(), run, command, CHOICE)
    assert isinstance(fact, ScriptImports)
    assert judge(CHECK, script_imports=fact, launch_command=command).status == expected


@pytest.mark.parametrize(
    ("line", "script", "hint"),
    [
        pytest.param("torchrun job/train.py", "job/train.py", "`-m job.train`", id="torchrun"),
        pytest.param("deepspeed a/b/t.py", "a/b/t.py", "`--module a.b.t`", id="deepspeed"),
        pytest.param("torchrun t.py", "t.py", "as a module of its package", id="no folder"),
        pytest.param("torchrun /a/t.py", "/a/t.py", "as a module of its package", id="absolute"),
        pytest.param("torchrun a-b/t.py", "a-b/t.py", "as a module of its package", id="no name"),
    ],
)
def test_the_hint_names_the_module(line: str, script: str, hint: str) -> None:
    fact = ScriptImports(script=script, relative=3)
    judged = judge(CHECK, script_imports=fact, launch_command=parse_command(line.split()))
    assert_fail(judged, "line 3 of")
    assert hint in judged.bad[0].hint
