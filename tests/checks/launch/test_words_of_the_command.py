"""Words that are no script, line ends of Windows, and modules that the interpreter does not find."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from dsdoctor.api import LaunchFiles, Patient, RunNeeds
from dsdoctor.host import LocalHost
from dsdoctor.job.resolve import resolve
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.launch_files import launch_files
from dsdoctor.testing import FakeHost, judge
from dsdoctor_checks.launch import launch_file_missing

CHECK = launch_file_missing.program_and_script_are_there
FILES = {"/usr/bin/torchrun": "", "/job/train.py": "", "/usr/bin/bash": "", "/job/bare": ""}
PATIENT = Patient(executable="/opt/t/bin/python", chosen_by="--python", version="3.11.7")


def status(words: list[str], files: dict[str, str] | None = None) -> tuple[str, str]:
    host = FakeHost(env={"PATH": "/usr/bin"}, files=FILES | (files or {}))
    run = resolve(RunNeeds(command=tuple(words), cwd="/job"), host)
    fact = launch_files.function(host, run, parse_command(run.command), PATIENT)
    judged = judge(CHECK, launch_files=fact)
    return judged.status, " ".join(found.message for found in judged.bad)


@pytest.mark.parametrize(
    ("words", "expected", "said"),
    [
        pytest.param(
            ["torchrun", "\u2013nproc_per_node", "2", "train.py"],
            "fail",
            "begins with `\u2013` (U+2013) instead of `-`",
            id="an en dash of a document",
        ),
        pytest.param(
            ["torchrun", "\u201c--nproc_per_node=2\u201d", "train.py"],
            "fail",
            "U+201C",
            id="quotes of a document",
        ),
        pytest.param(
            ["torchrun", " "], "fail", "a space follows", id="a space after the backslash"
        ),
        pytest.param(["torchrun", "train"], "fail", "`train.py` does", id="the ending is missing"),
        pytest.param(["torchrun", "bare"], "ok", "", id="a script without an ending"),
        pytest.param(["torchrun", "other"], "ok", "", id="a word of which nothing is known"),
        pytest.param(["torchrun", "-m", "train"], "ok", "", id="a module"),
        pytest.param(["torchrun", "--no_python", "train"], "ok", "", id="a program"),
        pytest.param(["torchrun", "train.py", "\u2013x"], "ok", "", id="the script gets it"),
    ],
)
def test_words(words: list[str], expected: str, said: str) -> None:
    found, message = status(words)
    assert found == expected
    assert said in message


TWO = "torchrun --nproc_per_node 2 \\\n  train.py\n"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param(TWO, "ok", id="line ends of Unix"),
        pytest.param(TWO.replace("\n", "\r\n"), "fail", id="line ends of Windows"),
        pytest.param("torchrun train.py\r\n", "fail", id="the script's name"),
        pytest.param("torchrun train.py --out o\r\n", "warn", id="an argument"),
        pytest.param("torchrun train.py # two\r\n", "ok", id="a comment ends the line"),
        pytest.param("export A=1\r\ntorchrun train.py\n", "ok", id="another line"),
        pytest.param("torchrun train.py &\r\n", "ok", id="an operator ends the command"),
        pytest.param(
            "torchrun 2 \\ \n train.py\n".replace(" 2", ""), "fail", id="a space at the end"
        ),
    ],
)
def test_shell_scripts(script: str, expected: str) -> None:
    assert status(["bash", "run.sh"], {"/job/run.sh": script})[0] == expected


@pytest.mark.parametrize(
    ("folder", "module", "missing"),
    [
        pytest.param(".", "ours.train", None, id="in the folder of the package"),
        pytest.param("ours", "ours.train", "ours.train", id="inside the package"),
        pytest.param("ours", "train", None, id="a file of the folder"),
        pytest.param(".", "json.tool", None, id="of the standard library"),
        pytest.param(".", "parts.train", None, id="of a folder without `__init__.py`"),
    ],
)
def test_modules_are_looked_for(
    tmp_path: Path, folder: str, module: str, missing: str | None
) -> None:
    for file in ("ours/__init__.py", "ours/train.py", "parts/train.py"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("raise SystemExit('was run')\n")
    python = str(Path(sys.executable))
    words = [python, "-m", module]
    patient = Patient(
        executable=python, chosen_by="--python", version="3.11", bin_dir=str(Path(python).parent)
    )
    run = RunNeeds(command=tuple(words), cwd=str(tmp_path / folder))
    fact = launch_files.function(LocalHost(), run, parse_command(words), patient)
    assert isinstance(fact, LaunchFiles)
    assert fact.missing_module == missing
    judged = judge(CHECK, launch_files=fact)
    assert judged.status == ("fail" if missing else "ok")
    # a shell script, or what is before the program, may change the folder or bring packages
    for before, script in (
        ((), "line 3 of `run.sh`"),
        (("uv", "run"), ""),
        (("PYTHONPATH=s",), ""),
    ):
        inside = msgspec.structs.replace(run, followed=script)
        started = parse_command((*before, *words))
        fact = launch_files.function(LocalHost(), inside, started, patient)
        assert isinstance(fact, LaunchFiles)
        assert fact.missing_module is None
    started = parse_command(("CUDA_VISIBLE_DEVICES=0", *words))
    fact = launch_files.function(LocalHost(), run, started, patient)
    assert isinstance(fact, LaunchFiles)
    assert fact.missing_module == missing
