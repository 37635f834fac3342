"""Rows of `deepspeed-missing`."""

from __future__ import annotations

import pytest

from dsdoctor.api import DeepSpeedInstall
from dsdoctor_checks.python import deepspeed_missing
from tests.checks.gpu.support import worst
from tests.checks.python.support import deepspeed, patient


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (deepspeed(), "ok"),
        (deepspeed(None), "fail"),
        (deepspeed("0.19.8", error="deepspeed/version.py cannot be read"), "fail"),
    ],
)
def test_rows(fact: DeepSpeedInstall, expected: str) -> None:
    assert worst(deepspeed_missing.deepspeed_is_installed, fact, patient()) == expected
