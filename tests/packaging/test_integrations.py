"""The GitHub Action and the pre-commit hook, run as far as they can be run without their hosts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
BAD = '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 7}}'


def run_step(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The step that runs dsdoctor, with the program of this environment in its place."""
    bin_dir = folder / "temp" / "dsdoctor" / "bin"
    bin_dir.mkdir(parents=True)
    program = bin_dir / "dsdoctor"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dsdoctor "$@"\n')
    program.chmod(0o755)
    step = ACTION["runs"]["steps"][1]
    given = {name: str(row["default"]) for name, row in ACTION["inputs"].items()} | inputs
    env = {
        name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: given[found[1]], value)
        for name, value in step["env"].items()
    }
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
        cwd=folder, env={**os.environ, **env, "RUNNER_TEMP": str(folder / "temp")},
        capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip


def test_the_action_annotates_a_bad_config(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(BAD)
    done = run_step(tmp_path, paths="ds.json")
    assert done.returncode == 1
    assert "::error file=ds.json,line=1,title=ds-config-wrong-type" in done.stdout


def test_the_action_passes_options_and_several_paths(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(BAD)
    (tmp_path / "b.json").write_text(BAD)
    done = run_step(tmp_path, paths="a.json b.json", args="--ignore\nds-config-wrong-type\n")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("hostile", ["$(touch pwned)", "; touch pwned", "`touch pwned`"])
def test_inputs_are_never_run(tmp_path: Path, hostile: str) -> None:
    for name in ("paths", "args", "deepspeed", "command"):
        folder = tmp_path / name
        folder.mkdir()
        run_step(folder, **{name: hostile})
        assert not (folder / "pwned").exists()


def test_an_unknown_command_is_refused(tmp_path: Path) -> None:
    done = run_step(tmp_path, command="format")
    assert done.returncode == 2
    assert "expected lint or check" in done.stdout


def test_inputs_reach_scripts_only_through_the_environment() -> None:
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]


def test_the_conda_package_requires_what_the_wheel_requires() -> None:
    recipe = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    conda = {
        row.replace(" ", "").replace("hjson-py", "hjson") for row in recipe["requirements"]["run"]
    }
    wheel = {row.partition(";")[0] for row in project["dependencies"]}
    assert conda == wheel | {f"python{project['requires-python']}"}


HOOK: dict[str, Any] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())[0]
MATCHED = ["ds_config.json", "conf/deepspeed_z3.json", "zero2.json", "hostfile", "a/run.sbatch"]
UNMATCHED = ["package.json", "config.json", "myhostfile.txt", "run.sh"]


def test_the_hook_takes_the_files_it_means_and_its_entry_runs(tmp_path: Path) -> None:
    pattern = re.compile(HOOK["files"])
    assert [name for name in MATCHED if pattern.search(name)] == MATCHED
    assert [name for name in UNMATCHED if pattern.search(name)] == []
    (tmp_path / "ds_config.json").write_text(BAD)
    words = [sys.executable, "-m", *HOOK["entry"].split(), "ds_config.json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, check=False, timeout=500)
    assert done.returncode == 1
