"""Rows of `env-not-activated`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import DeepSpeedInstall, LaunchCommand, Launcher, Launchers, LaunchFiles, Patient
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


SYSTEM = Launcher(name="python3", path="/usr/bin/python3", same_env=False)
SHIM = Launcher(name="python3", path="/home/me/.pyenv/shims/python3", same_env=None)
TORCHRUN = Launcher(name="torchrun")


@pytest.mark.parametrize(
    ("program", "launcher", "chosen_by", "expected"),
    [
        pytest.param("python3", SYSTEM, RUNNING, "fail", id="another interpreter"),
        pytest.param("torchrun", TORCHRUN, RUNNING, "fail", id="not on PATH"),
        pytest.param("torchrun", TORCHRUN, "VIRTUAL_ENV", "fail", id="active, but not on PATH"),
        pytest.param("python3", SYSTEM, "VIRTUAL_ENV", "ok", id="uvx puts its own first"),
        pytest.param("python3", SHIM, RUNNING, "ok", id="a shim decides when it runs"),
        pytest.param("python3", SYSTEM, "the command", "skip", id="the command selects one"),
        pytest.param("srun", SYSTEM, RUNNING, "ok", id="on other hosts"),
    ],
)
def test_what_a_command_starts(
    program: str, launcher: Launcher, chosen_by: str, expected: str
) -> None:
    facts: dict[str, Any] = {
        "launchers": Launchers(launchers=(launcher, ON_PATH)),
        "patient": patient(chosen_by=chosen_by),
        "deep_speed_install": deepspeed(),
        "launch_command": LaunchCommand(program=program, argv=(program, "t.py")),
    }
    assert judge(env_not_activated.env_is_on_path, **facts).status == expected


def test_a_launcher_that_the_environment_does_not_have_either() -> None:
    """Activating it would not help; `launch-file-missing` says what does."""
    facts: dict[str, Any] = {
        "launchers": Launchers(launchers=(Launcher(name="accelerate"), ON_PATH)),
        "patient": patient(chosen_by="VIRTUAL_ENV"),
        "deep_speed_install": deepspeed(),
        "launch_command": LaunchCommand(
            program="accelerate", argv=("accelerate", "launch", "t.py")
        ),
        "launch_files": LaunchFiles(program="accelerate"),
    }
    assert judge(env_not_activated.env_is_on_path, **facts).status == "ok"
    facts["launch_files"] = LaunchFiles(program="accelerate", program_path="/env/bin/accelerate")
    assert judge(env_not_activated.env_is_on_path, **facts).status == "fail"
