"""`script-syntax-error`: the interpreter parses the script and its own modules."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.api import Missing, RunNeeds, ScriptSyntax
from dsdoctor.host import LocalHost
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.script_syntax import script_syntax
from dsdoctor.testing import assert_fail, judge, read
from dsdoctor_checks.python import script_syntax_error
from tests.checks.python.support import patient
from tests.support.command import clean_environment, dsdoctor

CHECK = script_syntax_error.script_is_parsed
BROKEN = "import os\nx = (1,\n"


def parsed(
    folder: Path, command: str = "torchrun train.py", python: str = sys.executable, **run: Any
) -> ScriptSyntax | Missing:
    needs = RunNeeds(cwd=str(folder), command=tuple(command.split()), **run)
    found: ScriptSyntax | Missing = read(
        script_syntax,
        LocalHost(clean_environment(folder)),
        run_needs=needs,
        launch_command=parse_command(needs.command),
        patient_choice=PatientChoice(executable=python, chosen_by="--python"),
        patient=patient(version="3.8.18"),
    )
    return found


@pytest.mark.parametrize(
    ("text", "line", "error_type"),
    [
        pytest.param(BROKEN, 2, "SyntaxError", id="a bracket is not closed"),
        pytest.param("import os\n  x = 1\n", 2, "IndentationError", id="an indent"),
        pytest.param("if 1:\n        x = 1\n\ty = 2\n", 3, "TabError", id="tabs and spaces"),
        pytest.param("print 'Python 2'\n", 1, "SyntaxError", id="Python 2"),
        pytest.param("# -*- coding: nope -*-\n", 0, "SyntaxError", id="an unknown encoding"),
        pytest.param("return 1\n", 1, "SyntaxError", id="what only the compiler rejects"),
    ],
)
def test_what_cannot_be_parsed(tmp_path: Path, text: str, line: int, error_type: str) -> None:
    (tmp_path / "train.py").write_text(text)
    found = parsed(tmp_path)
    assert isinstance(found, ScriptSyntax)
    assert (found.file, found.line, found.error_type) == ("train.py", line, error_type)
    finding = assert_fail(judge(CHECK, script_syntax=found, patient=patient(version="3.11.7")))
    assert "Python 3.11.7 cannot parse `train.py`" in finding.message
    assert finding.effect == "every rank stops before the script's first line"


def test_modules_next_to_the_script_are_parsed_too(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from model import net\nif net:\n    import unused\n")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "__init__.py").write_text("import layers, types\nnet = '\\d'\n")
    (tmp_path / "layers.py").write_text(BROKEN)
    # what is imported under a condition, and what Python has loaded before, is not judged
    (tmp_path / "unused.py").write_text(BROKEN)
    (tmp_path / "types.py").write_text(BROKEN)
    found = parsed(tmp_path)
    assert isinstance(found, ScriptSyntax)
    assert (found.parsed, found.file) == (3, "layers.py")
    finding = assert_fail(judge(CHECK, script_syntax=found, patient=patient()))
    assert finding.effect == "every rank stops when the script imports this module"
    (tmp_path / "layers.py").write_text("x = 1\n")
    fine = parsed(tmp_path)
    assert fine == ScriptSyntax(script="train.py", parsed=3)
    assert judge(CHECK, script_syntax=fine, patient=patient()).status == "ok"


def test_nothing_of_a_line_is_shown(tmp_path: Path) -> None:
    """The script may be a link to a file that only root can read."""
    (tmp_path / "secret").write_text("root:$6$salt$hash:1:0:::\n")
    (tmp_path / "train.py").symlink_to(tmp_path / "secret")
    found = parsed(tmp_path)
    assert isinstance(found, ScriptSyntax)
    assert found.line == 1
    assert "salt" not in repr(found)


def test_a_newer_python_is_named(tmp_path: Path) -> None:
    """The interpreter here stands for an old one, which rejects what dsdoctor's own parses."""
    (tmp_path / "train.py").write_text("match 1:\n    case _: pass\n")
    record = {"file": f"{tmp_path}/train.py", "ok": False, "line": 1}
    said = json.dumps({**record, "error_type": "SyntaxError", "error": "invalid syntax"})
    old = tmp_path / "python3.8"
    old.write_text(f"#!/bin/sh\nprintf '\\036dsdoctor:%s\\n' '{said}'\n")
    old.chmod(0o755)
    found = parsed(tmp_path, python=str(old))
    assert isinstance(found, ScriptSyntax)
    assert found.newer == f"{sys.version_info[0]}.{sys.version_info[1]}"
    hint = assert_fail(judge(CHECK, script_syntax=found, patient=patient())).hint
    assert hint.startswith(f"run the job with a newer Python ({found.newer} parses the file)")


@pytest.mark.parametrize(
    ("command", "run"),
    [
        pytest.param("docker run image torchrun train.py", {}, id="a container"),
        pytest.param("srun --container-image=a torchrun train.py", {}, id="pyxis"),
        pytest.param("ssh node torchrun train.py", {}, id="another machine"),
        pytest.param("uv run --python 3.14 train.py", {}, id="a runner that was not followed"),
        pytest.param("torchrun -m pkg.train", {}, id="a module"),
        pytest.param("torchrun $SCRIPT.py", {}, id="a shell decides"),
    ],
)
def test_another_interpreter_is_not_judged(
    tmp_path: Path, command: str, run: dict[str, Any]
) -> None:
    (tmp_path / "train.py").write_text(BROKEN)
    found = parsed(tmp_path, command, **run)
    assert isinstance(found, Missing)
    assert not found.is_unknown


def test_a_shell_script_is_followed(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(BROKEN)
    (tmp_path / "run.sh").write_text("#!/bin/bash\ntorchrun --nproc_per_node 2 train.py\n")
    done = dsdoctor(
        "check", "--quick", "--", "bash", "run.sh", env=clean_environment(tmp_path), cwd=tmp_path
    )
    assert done.status == 1
    assert "script-syntax-error" in done.out
