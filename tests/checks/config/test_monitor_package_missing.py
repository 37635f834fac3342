"""Rows of `monitor-package-missing`: what is silent, and what fails."""

from __future__ import annotations

import pytest

from dsdoctor.api import Package, Packages
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
        assert statuses(check(config(text), packages, m.ABSENT)) == expected
