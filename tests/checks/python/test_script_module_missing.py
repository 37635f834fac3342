"""`script-module-missing`: what a script imports, and what the interpreter finds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.api import CallSetting, LaunchCommand, Missing, RunNeeds, ScriptCalls, ScriptImports
from dsdoctor.host import LocalHost
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.script_imports import imports_of, script_imports
from dsdoctor.testing import assert_fail, judge, read
from dsdoctor_checks.python import _optimizer_packages, script_module_missing
from tests.checks.python.support import packages, patient
from tests.support.command import clean_environment, dsdoctor

CHECK = script_module_missing.modules_are_installed
CHOICE = PatientChoice(executable=sys.executable, chosen_by="--python", why="a test")


def imports(**fields: Any) -> ScriptImports:
    return ScriptImports(script="train.py", **fields)


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(imports(found=("torch",)), "ok", id="all modules are found"),
        pytest.param(imports(missing={"peft": 3}), "fail", id="a package is not installed"),
        pytest.param(imports(missing={"ours": 3}), "fail", id="a module that no package provides"),
        pytest.param(
            imports(missing={"ours": 3}, changes_path=True),
            "skip",
            id="the script adds a folder to the path",
        ),
        pytest.param(
            imports(missing={"ours": 3}, own=2),
            "skip",
            id="a module next to the script may add a folder",
        ),
        pytest.param(
            imports(missing={"ours": 1}, own=2),
            "fail",
            id="the module is imported before the one that may add a folder",
        ),
        pytest.param(
            imports(missing={"peft": 3}, changes_path=True),
            "fail",
            id="a package is installed, wherever the script looks",
        ),
        pytest.param(imports(missing={"torch": 1}), "ok", id="torch has a condition of its own"),
        pytest.param(imports(bare={"wandb": 2}), "fail", id="only the folder that runs leave"),
        pytest.param(imports(bare={"configs": 2}), "ok", id="a folder of the project"),
    ],
)
def test_rows(fact: ScriptImports, expected: str) -> None:
    assert judge(CHECK, script_imports=fact, patient=patient()).status == expected


def test_the_command_names_packages_and_not_modules() -> None:
    fact = imports(missing={"cv2": 2, "peft": 3, "ours": 4})
    found = assert_fail(judge(CHECK, script_imports=fact, patient=patient()), "`cv2` (line 2)")
    assert "-m pip install opencv-python peft`" in found.hint
    assert "install what provides `ours`" in found.hint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("import a, b.c as d", {"a": 1, "b": 1}, id="several in one line"),
        pytest.param("from a.b import c", {"a": 1}, id="a part of a package"),
        pytest.param("from . import a\nfrom .b import c", {}, id="relative to the package"),
        pytest.param("if x:\n    import a", {}, id="under a condition"),
        pytest.param("def f():\n    import a", {}, id="when a function is called"),
        pytest.param("try:\n    import a\nexcept ImportError: ...", {}, id="where it may fail"),
        pytest.param("import a\nimport a.b", {"a": 1}, id="twice"),
        pytest.param("print 'Python 2'", None, id="a text that this Python cannot parse"),
    ],
)
def test_what_a_script_imports(text: str, expected: dict[str, int] | None) -> None:
    assert imports_of(text) == expected


def look(folder: Path, command: str = "torchrun train.py", **run: Any) -> ScriptImports | Missing:
    needs = RunNeeds(cwd=str(folder), command=tuple(command.split()), **run)
    found: ScriptImports | Missing = read(
        script_imports,
        LocalHost(clean_environment(folder)),
        run_needs=needs,
        launch_command=parse_command(needs.command),
        patient_choice=CHOICE,
    )
    return found


def test_the_interpreter_looks_where_the_script_would(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import json\nimport near\nimport fetch\nimport no_such_x\n")
    (tmp_path / "near.py").write_text("raise SystemExit('it was imported')\n")
    # `fetch` is a script of dsdoctor's own, in the folder of the one that looks
    assert look(tmp_path) == imports(
        found=("json", "near"), missing={"fetch": 3, "no_such_x": 4}, own=2
    )


def test_pythonpath_of_the_command_counts(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "ours.py").write_text("")
    (tmp_path / "train.py").write_text("import ours\n")
    assert look(tmp_path) == imports(missing={"ours": 1})
    there = look(tmp_path, f"PYTHONPATH={tmp_path}/lib torchrun train.py")
    assert there == imports(found=("ours",))


@pytest.mark.parametrize(
    ("command", "run", "why"),
    [
        pytest.param("uv run --with x torchrun train.py", {}, "the wrapper", id="uv adds packages"),
        pytest.param(
            "srun --container-image=a torchrun train.py", {}, "the wrapper", id="a container"
        ),
        pytest.param(
            "torchrun train.py",
            {"followed": "line 3 of `a.sh`"},
            "the wrapper",
            id="a shell script",
        ),
        pytest.param("torchrun -m pkg.train", {}, "no Python script", id="a module"),
    ],
)
def test_another_environment_is_not_judged(
    tmp_path: Path, command: str, run: dict[str, Any], why: str
) -> None:
    (tmp_path / "train.py").write_text("import no_such_x\n")
    found = look(tmp_path, command, **run)
    assert isinstance(found, Missing)
    assert why in found.detail
    assert not found.is_unknown


def test_a_job_that_lacks_a_package_is_not_started(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import no_such_x\nprint('it ran')\n")
    env = clean_environment(tmp_path)
    words = ("--preflight", "quick", "--runs-dir", "runs", "--", "python", "train.py")
    done = dsdoctor("run", *words, env=env, cwd=tmp_path)
    assert done.status == 79
    assert "script-module-missing" in done.err
    assert "it ran" not in done.out


def test_a_package_that_imports_torch_to_build_is_not_built_in_isolation() -> None:
    fact = imports(missing={"flash_attn": 2, "peft": 3}, changes_path=True)
    hint = assert_fail(judge(CHECK, script_imports=fact, patient=patient())).hint
    assert "pip install --no-build-isolation flash-attn`" in hint
    assert "pip install peft`" in hint


@pytest.mark.parametrize(
    ("files", "bare"),
    [
        pytest.param(("wandb/run-1/logs/debug.log",), {"wandb": 1}, id="what runs leave"),
        pytest.param(("wandb/run-1/files/code/a.py",), {"wandb": 1}, id="with copies of code"),
        pytest.param(("wandb/__init__.py",), {}, id="a package"),
        pytest.param(("wandb/rows.py",), {}, id="modules of the project"),
        pytest.param(("wandb/sub/rows.py",), {}, id="modules below"),
        pytest.param((), {}, id="no folder"),
    ],
)
def test_a_folder_is_no_package(
    tmp_path: Path, files: tuple[str, ...], bare: dict[str, int]
) -> None:
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).touch()
    (tmp_path / "t.py").write_text("import wandb\n")
    command = parse_command(["torchrun", "t.py"])
    run = RunNeeds(command=command.argv, cwd=str(tmp_path))
    # without the packages of the environment of the tests
    alone = PatientChoice(executable="/usr/bin/python3", chosen_by="--python", why="a test")
    fact = script_imports.function(LocalHost(), run, command, alone)
    assert isinstance(fact, ScriptImports)
    assert fact.bare == bare


@pytest.mark.parametrize(
    ("words", "found", "installed", "expected"),
    [
        pytest.param(("--optim", "paged_adamw_8bit"), "transformers", {}, "fail", id="absent"),
        pytest.param(("--optim=galore_adamw",), "trl", {}, "fail", id="another package"),
        pytest.param(
            ("--optim", "paged_adamw_8bit"),
            "transformers",
            {"bitsandbytes": "0.50.2"},
            "ok",
            id="installed",
        ),
        pytest.param(("--optim", "adamw_torch"), "transformers", {}, "ok", id="one of torch"),
        pytest.param(("--optim", "paged_adamw_8bit"), "torch", {}, "ok", id="a parser of its own"),
    ],
)
def test_the_package_of_an_optimizer(
    words: tuple[str, ...], found: str, installed: dict[str, str], expected: str
) -> None:
    judged = judge(
        CHECK,
        script_imports=imports(found=(found,)),
        launch_command=LaunchCommand(script="train.py", script_args=words),
        packages=packages(transformers="5.24.0", **installed),
    )
    assert judged.status == expected


FLASH = CallSetting(
    line=4, called="A.from_pretrained", argument="attn_implementation", value="flash_attention_2"
)
OPTIM = CallSetting(line=7, called="SFTConfig", argument="optim", value="adamw_8bit")


@pytest.mark.parametrize(
    ("words", "settings", "installed", "message"),
    [
        pytest.param(
            ("--attn_implementation", "flash_attention_2"), (), {},
            "`--attn_implementation flash_attention_2` is passed, but `flash-attn` is not installed",
            id="an option",
        ),
        pytest.param(
            (), (FLASH,), {},
            'line 4 of `train.py` passes `attn_implementation="flash_attention_2"`, but `flash-attn`'
            " is not installed",
            id="attention in the script",
        ),
        pytest.param(
            (), (OPTIM,), {},
            'line 7 of `train.py` passes `optim="adamw_8bit"`, but `bitsandbytes`, which has that'
            " optimizer, is not installed",
            id="an optimizer in the script",
        ),
        pytest.param((), (FLASH,), {"flash-attn": "2.8.3"}, "", id="installed"),
        pytest.param((), (FLASH,), {"kernels": "0.10"}, "", id="loaded from the hub"),
        pytest.param((), (FLASH,), {"torch-npu": "2.6"}, "", id="an NPU has it"),
        pytest.param((), (FLASH,), {"torch": "2.8.0+xpu"}, "", id="an XPU has it"),
        pytest.param(("--attn_implementation", "sdpa"), (), {}, "", id="attention of torch"),
    ],
)  # fmt: skip
def test_the_packages_that_settings_need(
    words: tuple[str, ...],
    settings: tuple[CallSetting, ...],
    installed: dict[str, str],
    message: str,
) -> None:
    judged = judge(
        CHECK,
        script_imports=imports(found=("transformers",)),
        launch_command=LaunchCommand(script="train.py", script_args=words),
        script_calls=ScriptCalls(script="train.py", settings=settings),
        packages=packages(transformers="5.24.0", **installed),
    )
    assert judged.status == ("fail" if message else "ok")
    assert not message or judged.worst.message == message


def test_every_optimizer_that_needs_a_package_is_known() -> None:
    names = pytest.importorskip("transformers.training_args").OptimizerNames
    known = {one.value for one in names}
    assert set(_optimizer_packages.OPTIMIZERS) <= known
    bare = known - set(_optimizer_packages.OPTIMIZERS)
    assert not [name for name in bare if "8bit" in name or name.startswith(("paged_", "galore_"))]
