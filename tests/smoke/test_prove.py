"""`recommend --prove`: one command from a model's name to proof."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import dsdoctor
from dsdoctor.model.schema import launch_schema, smoke_schema
from tests.smoke.conftest import Smoke
from tests.smoke.test_faults import shim

pytestmark = [pytest.mark.train, pytest.mark.timeout(1800)]


def prove(smoke: Smoke, *args: str, patient: str = sys.executable) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "dsdoctor", "recommend", "--model", "gpt2", "--cpu", "2",
         "--prove", "--python", patient, *args],
        capture_output=True, text=True, env=smoke.env, cwd=smoke.folder, timeout=1500, check=False,
    )  # fmt: skip


def test_settings_are_computed_run_and_reported_in_one_document(smoke: Smoke) -> None:
    folder = smoke.folder / "proven"
    done = prove(smoke, "--format", "json", "-o", str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads(launch_schema()))
    jsonschema.validate(document["proof"], json.loads(smoke_schema()))
    proof = document["proof"]
    assert proof["verdict"] == "pass"
    assert len(proof["ranks"]) == document["world"] == 2
    asked = document["ds_config"]["zero_optimization"]["stage"]
    assert proof["launch"]["ds_config"]["zero_optimization"]["stage"] == asked
    assert any(f"ZeRO-{asked}" in line for line in proof["proved"])
    assert any("that gpt2 at micro-batch" in line for line in proof["not_proved"])
    assert json.loads((folder / "report.json").read_text()) == proof
    assert {path.name for path in folder.iterdir()} >= {"launch.sh", "launch.json"}


def test_settings_that_do_not_run_have_the_exit_status_of_smoke(smoke: Smoke) -> None:
    folder = Path("failed")
    patient = shim(smoke.folder, "exit 0")
    done = prove(smoke, "-o", str(folder), patient=patient)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "> zero-" in done.stdout.partition("\nFAIL  ")[0]
    assert "\nFAIL  " in done.stdout
    report = json.loads((smoke.folder / folder / "report.json").read_text())
    assert report["verdict"] == "fail"


def test_the_run_as_a_function(smoke: Smoke, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in smoke.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(smoke.folder)
    found = dsdoctor.smoke(cpu=2, steps=3, python=sys.executable)
    assert found.ok
    assert len(found.ranks) == 2
    assert repr(found).startswith("<dsdoctor smoke: pass: ")
    jsonschema.validate(json.loads(found.to_json()), json.loads(smoke_schema()))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"steps": 1}, "`steps` is 1; expected 3 or more"),
        ({"gpus": "first"}, "is not a GPU"),
        ({"python": "/nowhere/python"}, "/nowhere/python"),
        ({"cpu": 1, "config": "/nowhere.json"}, "/nowhere.json"),
    ],
)
def test_a_run_that_cannot_be_made_is_a_usage_error(options: dict[str, Any], said: str) -> None:
    with pytest.raises(dsdoctor.UsageError, match=said):
        dsdoctor.smoke(**options)
