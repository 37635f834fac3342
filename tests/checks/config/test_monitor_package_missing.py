"""Rows of `monitor-package-missing`: what is silent, and what fails."""

from __future__ import annotations

import pytest

from dsdoctor.api import CallSetting, LaunchCommand, Package, Packages, ScriptCalls, ScriptImports
from dsdoctor.testing import judge
from dsdoctor_checks.config import monitor_package_missing
from tests.checks import machines as m
from tests.checks.config.rows import config, statuses


@pytest.mark.parametrize(
    ("section", "installed", "status"),
    [
        pytest.param("csv_monitor", {}, "ok", id="csv needs nothing"),
        pytest.param("tensorboard", {}, "fail", id="tensorboard is absent"),
        pytest.param("tensorboard", {"tensorboard": "2.20.0"}, "ok", id="tensorboard is there"),
        pytest.param("tensorboard", {"tb-nightly": "2.21.0a1"}, "ok", id="its nightly is there"),
        pytest.param("wandb", {"tensorboard": "2.20.0"}, "fail", id="wandb is absent"),
        pytest.param("comet", {"comet-ml": "3.40.0"}, "fail", id="comet is too old"),
        pytest.param("comet", {"comet-ml": "3.49.1"}, "ok", id="comet is there"),
    ],
)
def test_monitor_package(section: str, installed: dict[str, str], status: str) -> None:
    packages = Packages(
        packages={name: Package(name=name, version=one) for name, one in installed.items()}
    )
    check = monitor_package_missing.monitors_are_installed.function
    for enabled, expected in (("true", status), ("false", "ok")):
        text = '{"%s": {"enabled": %s}}' % (section, enabled)  # noqa: UP031  # braces in JSON
        assert (
            statuses(check(config(text), packages, m.ABSENT, m.ABSENT, m.ABSENT, m.ABSENT))
            == expected
        )


@pytest.mark.parametrize(
    ("words", "found", "installed", "expected"),
    [
        pytest.param(("--report_to", "wandb"), ("transformers",), (), "fail", id="absent"),
        pytest.param(("--report-to=mlflow",), ("trl",), (), "fail", id="a trainer of trl"),
        pytest.param(("--report_to", "wandb"), ("transformers",), ("wandb",), "skip", id="there"),
        pytest.param(
            ("--report_to", "tensorboard"), ("transformers",), ("tensorboardx",), "skip", id="other"
        ),
        pytest.param(("--report_to", "none"), ("transformers",), (), "skip", id="switched off"),
        pytest.param(("--report_to", "all"), ("transformers",), (), "skip", id="what is there"),
        pytest.param(("--report_to", "wandb"), ("torch",), (), "skip", id="a script of its own"),
    ],
)
def test_tracker_of_the_trainer(
    words: tuple[str, ...], found: tuple[str, ...], installed: tuple[str, ...], expected: str
) -> None:
    names = ("transformers", *installed)
    judged = judge(
        monitor_package_missing.monitors_are_installed,
        packages=Packages(packages={name: Package(name=name, version="5.0") for name in names}),
        launch_command=LaunchCommand(script="train.py", script_args=words),
        script_imports=ScriptImports(script="train.py", found=found),
    )
    assert judged.status == expected


def test_the_tracker_that_the_script_selects() -> None:
    wandb = CallSetting(line=6, called="TrainingArguments", argument="report_to", value="wandb")
    judged = judge(
        monitor_package_missing.monitors_are_installed,
        script_imports=ScriptImports(script="t.py", found=("transformers",)),
        script_calls=ScriptCalls(script="t.py", settings=(wandb,)),
        packages=Packages(
            packages={"transformers": Package(name="transformers", version="5.24.0")}
        ),
    )
    said = 'line 6 of `t.py` passes `report_to="wandb"`, but `wandb` is not installed'
    assert (judged.status, judged.worst.message) == ("fail", said)
    assert judged.worst.hint.endswith('or write `report_to="none"`')
