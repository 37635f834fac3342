"""Rows of `env-not-activated`."""

from __future__ import annotations

import pytest

from dsdoctor.api import DeepSpeedInstall, Launcher, Launchers, Patient
from dsdoctor_checks.python import env_not_activated
from tests.checks.gpu.support import worst
from tests.checks.python.support import deepspeed, patient

OFF_PATH = Launcher(name="deepspeed")
ON_PATH = Launcher(name="deepspeed", path="/env/bin/deepspeed", same_env=True)
RUNNING = "running interpreter"


@pytest.mark.parametrize(
    ("launcher", "who", "installed", "expected"),
    [
        (ON_PATH, patient(), deepspeed(), "ok"),
        (OFF_PATH, patient(chosen_by=RUNNING), deepspeed(), "warn"),
        (OFF_PATH, patient(chosen_by=RUNNING, kind="conda"), deepspeed(), "warn"),
        (OFF_PATH, patient(chosen_by=RUNNING, kind="system"), deepspeed(), "ok"),
        (OFF_PATH, patient(chosen_by="--python"), deepspeed(), "ok"),
        (OFF_PATH, patient(chosen_by=RUNNING), deepspeed(None), "ok"),
    ],
)
def test_rows(launcher: Launcher, who: Patient, installed: DeepSpeedInstall, expected: str) -> None:
    facts = (Launchers(launchers=(launcher,)), who, installed)
    assert worst(env_not_activated.env_is_on_path, *facts) == expected
