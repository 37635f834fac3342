"""`script-import-broken`: the import lines of a script, tried in the environment."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dsdoctor
from dsdoctor.api import ImportOutcome, Missing, ModuleImports, RunNeeds, ScriptImports
from dsdoctor.host import LocalHost
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.module_imports import module_imports
from dsdoctor.probes.script_imports import script_imports
from dsdoctor.testing import FakeHost, assert_fail, judge, read
from dsdoctor_checks.python import script_import_broken
from tests.checks.machines import ABSENT
from tests.checks.python.support import packages, patient
from tests.support.command import clean_environment

CHECK = script_import_broken.imports_work
CHILD = Path(dsdoctor.__file__).parent / "probes" / "children" / "torch_live.py"
CHOICE = PatientChoice(executable=sys.executable, chosen_by="--python", why="a test")
GONE = "cannot import name 'AdamW' from 'transformers' (/s/transformers/__init__.py)"
SCRIPT = ScriptImports(script="t.py", names={"trl:SFTTrainer": 2, "transformers:AdamW": 3})


def failed(message: str, kind: str = "ImportError") -> ImportOutcome:
    return ImportOutcome(ok=False, error_type=kind, message=message)


def found(**names: ImportOutcome) -> Any:
    given = {name.replace("__", ":"): outcome for name, outcome in names.items()}
    return judge(
        CHECK,
        module_imports=ModuleImports(names=given),
        script_imports=SCRIPT,
        packages=packages(transformers="5.0.0", trl="0.24.0"),
        patient=patient(),
    )


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param({}, "skip", id="nothing-was-tried"),
        pytest.param({"trl__SFTTrainer": ImportOutcome(ok=True)}, "ok", id="it-works"),
        pytest.param({"trl__SFTTrainer": failed("120 s", "hang")}, "ok", id="a-slow-disk"),
        pytest.param({"trl__SFTTrainer": failed("x")}, "fail", id="it-fails"),
        pytest.param({"trl__SFTTrainer": failed("SIGSEGV", "signal")}, "fail", id="it-crashes"),
    ],
)
def test_rows(names: dict[str, ImportOutcome], expected: str) -> None:
    assert found(**names).status == expected


def test_the_first_line_that_fails_is_named() -> None:
    judged = found(transformers__AdamW=failed(GONE), trl__SFTTrainer=failed("no model\nmore"))
    finding = assert_fail(judged)
    assert finding.message == (
        "`from trl import SFTTrainer` (`t.py`, line 2) fails with `ImportError: no model`"
    )
    assert "install -U trl" in finding.hint
    assert finding.evidence["broken"] == ["transformers:AdamW", "trl:SFTTrainer"]


def test_the_module_that_an_import_lacks_is_named() -> None:
    words = "Failed to import trl.x because of the following error:\nNo module named 'mergekit'"
    finding = assert_fail(found(trl__SFTTrainer=failed(words, "RuntimeError")))
    assert finding.message.endswith("following error: No module named 'mergekit'`")
    assert "pip install mergekit`" in finding.hint


def tried(folder: Path, *names: str, cwd: Path | None = None) -> dict[str, Any]:
    """What the child says of these names, with the packages of a folder."""
    (folder / "torch.py").write_text("")
    done = subprocess.run(
        [sys.executable, str(CHILD), "--names", ",".join(names)],
        cwd=cwd or folder,
        env={**clean_environment(folder), "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    lines = [row for row in done.stdout.split("\n") if row.startswith("\x1edsdoctor:")]
    rows = [json.loads(row.removeprefix("\x1edsdoctor:")) for row in lines]
    return {row["fact"]: row["value"] for row in rows if "fact" in row}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package = tmp_path / "site" / "peft"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "A = 1\n"
        "def __getattr__(name):\n"
        "    if name == 'Lazy':\n"
        "        from transformers_of_another_release import x\n"
        "    raise AttributeError(name)\n"
    )
    (package / "part.py").write_text("")
    return tmp_path / "site"


def test_names_are_imported_as_the_statement_does(folder: Path) -> None:
    values = tried(folder, "peft", "peft:A", "peft:part", "peft:Lazy", "peft:Nope")
    assert [values[f"import peft{name}"]["ok"] for name in ("", ":A", ":part")] == [True] * 3
    assert values["import peft:Lazy"]["error_type"] == "ModuleNotFoundError"
    own = subprocess.run(
        [sys.executable, "-c", "from peft import Nope"],
        env={**clean_environment(folder), "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    said = own.stderr.splitlines()[-1]
    wrong = values["import peft:Nope"]
    assert f"{wrong['error_type']}: {wrong['message']}" == said


def test_the_working_folder_is_not_where_they_are_looked_for(folder: Path, tmp_path: Path) -> None:
    """It need not be the script's, and root may stand in a folder of somebody else."""
    (tmp_path / "cwd").mkdir()
    (tmp_path / "cwd" / "peft.py").write_text("open('ran', 'w')\n")
    values = tried(folder, "peft:A", cwd=tmp_path / "cwd")
    assert values["import peft:A"]["ok"]
    assert not (tmp_path / "cwd" / "ran").exists()


@pytest.mark.parametrize(
    ("script", "asked"),
    [
        pytest.param(SCRIPT, "trl:SFTTrainer,transformers:AdamW", id="all"),
        pytest.param(
            ScriptImports(script="t.py", names=SCRIPT.names, own=3),
            "trl:SFTTrainer",
            id="before-a-module-of-its-own",
        ),
        pytest.param(
            ScriptImports(script="t.py", names=SCRIPT.names, changes_path=True),
            None,
            id="the-script-changes-the-path",
        ),
    ],
)
def test_only_what_the_script_surely_imports_is_tried(
    script: ScriptImports, asked: str | None
) -> None:
    host = FakeHost(env={"PATH": "/bin"}, queries={"executable": "/py"}, commands={"": ""})
    installed = packages(torch="2.4.0")
    module_imports.function(host, RunNeeds(), CHOICE, installed, ABSENT, script)
    ran = [argv[argv.index("--names") + 1] for argv in host.ran if "--names" in argv]
    assert ran == ([] if asked is None else [asked])


def test_modules_of_the_interpreter_itself_are_not_next_to_the_script(tmp_path: Path) -> None:
    """`os` has the origin `frozen`, which is no path."""
    (tmp_path / "train.py").write_text("import os, sys\nimport packaging\n")
    command = parse_command(["python", "train.py"])
    run = RunNeeds(cwd=str(tmp_path), command=command.argv)
    facts: ScriptImports | Missing = read(
        script_imports, LocalHost(), run_needs=run, launch_command=command, patient_choice=CHOICE
    )
    assert isinstance(facts, ScriptImports)
    assert facts.own == 0
