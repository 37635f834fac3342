"""Rows of `deepspeed-missing`."""

from __future__ import annotations

import pytest

from dsdoctor.api import DeepSpeedInstall
from dsdoctor.testing import judge
from dsdoctor_checks.python import deepspeed_missing
from tests.checks.python.support import deepspeed, patient


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(deepspeed(), "ok", id="deepspeed is installed"),
        pytest.param(deepspeed(None), "fail", id="deepspeed is not installed"),
        pytest.param(
            deepspeed("0.19.8", error="deepspeed/version.py cannot be read"),
            "fail",
            id="deepspeed is installed, but its version cannot be read",
        ),
    ],
)
def test_rows(fact: DeepSpeedInstall, expected: str) -> None:
    assert (
        judge(
            deepspeed_missing.deepspeed_is_installed, deep_speed_install=fact, patient=patient()
        ).status
        == expected
    )
