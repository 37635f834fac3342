"""Rows of `env-not-activated`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import DeepSpeedInstall, Launcher, Launchers, Patient
from dsdoctor.testing import judge
from dsdoctor_checks.python import env_not_activated
from tests.checks.python.support import deepspeed, patient

OFF_PATH = Launcher(name="deepspeed")
ON_PATH = Launcher(name="deepspeed", path="/env/bin/deepspeed", same_env=True)
RUNNING = "running interpreter"


@pytest.mark.parametrize(
    ("launcher", "who", "installed", "expected"),
    [
        pytest.param(ON_PATH, patient(), deepspeed(), "ok", id="deepspeed is on PATH"),
        pytest.param(
            OFF_PATH,
            patient(chosen_by=RUNNING),
            deepspeed(),
            "warn",
            id="a venv that was not activated",
        ),
        pytest.param(
            OFF_PATH,
            patient(chosen_by=RUNNING, kind="conda"),
            deepspeed(),
            "warn",
            id="a conda environment that was not activated",
        ),
        pytest.param(
            OFF_PATH,
            patient(chosen_by=RUNNING, kind="system"),
            deepspeed(),
            "skip",
            id="the system's Python has nothing to activate",
        ),
        pytest.param(
            OFF_PATH,
            patient(chosen_by="--python"),
            deepspeed(),
            "skip",
            id="the user chose the interpreter",
        ),
        pytest.param(
            OFF_PATH,
            patient(chosen_by=RUNNING),
            deepspeed(None),
            "skip",
            id="deepspeed is not installed, so nothing is missing from PATH",
        ),
    ],
)
def test_rows(launcher: Launcher, who: Patient, installed: DeepSpeedInstall, expected: str) -> None:
    facts: dict[str, Any] = {
        "launchers": Launchers(launchers=(launcher,)),
        "patient": who,
        "deep_speed_install": installed,
    }
    assert judge(env_not_activated.env_is_on_path, **facts).status == expected
