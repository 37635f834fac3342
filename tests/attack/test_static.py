"""What can be seen without running anything: the GitHub Action, and ruff's security rules."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.any_user

ROOT = Path(__file__).parents[2]


def problems(action: dict[str, Any]) -> list[str]:
    """Inputs that reach a shell as code, and actions that somebody else can exchange."""
    found = []
    for step in action["runs"]["steps"]:
        if "${{" in step.get("run", ""):
            found.append("an expression in `run` becomes part of the script")
        if "run" in step and "shell" not in step:
            found.append("no shell is named")
        used = step.get("uses", "./")
        if not used.startswith("./") and not re.search(r"@[0-9a-f]{40}$", used):
            found.append(f"`{used}` is not pinned to a commit")
        if re.search(r"\beval\b|GITHUB_(?:ENV|PATH)", step.get("run", "")):
            found.append("the script evaluates text or changes later steps")
    return found


def test_the_action_takes_no_input_as_code() -> None:
    assert problems(yaml.safe_load((ROOT / "action.yml").read_text())) == []


@pytest.mark.parametrize(
    "step",
    [
        {"run": "dsdoctor lint ${{ inputs.paths }}", "shell": "bash"},
        {"run": "dsdoctor lint"},
        {"uses": "actions/setup-python@v5"},
        {"run": 'eval "$ARGUMENTS"', "shell": "bash"},
        {"run": 'echo "$X" >> "$GITHUB_ENV"', "shell": "bash"},
    ],
)
def test_a_bad_step_is_seen(step: dict[str, str]) -> None:
    assert len(problems({"runs": {"steps": [step]}})) == 1


def test_no_shipped_file_is_exempt_from_all_security_rules() -> None:
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert [rule for rule in ruff["ignore"] if re.fullmatch(r"S[0-9]*", rule)] == []
    exempt = {where for where, rules in ruff["per-file-ignores"].items() if "S" in rules}
    assert all(where.startswith(("tests", "benchmarks", "tools")) for where in exempt), exempt
