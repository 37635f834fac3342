"""Rows of `numpy-abi-2`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import DeepSpeedLive, Packages, TorchBuild
from dsdoctor.testing import judge
from dsdoctor_checks.python import numpy_abi_2
from tests.checks.python.support import deepspeed_live, packages


@pytest.mark.parametrize(
    ("found", "torch", "live", "expected"),
    [
        pytest.param(
            packages(numpy="2.3.1", deepspeed="0.19.8"),
            "2.13.0",
            deepspeed_live(),
            "ok",
            id="numpy 2 with current torch and deepspeed",
        ),
        pytest.param(
            packages(numpy="1.26.4", deepspeed="0.14.0"),
            "2.2.2",
            deepspeed_live(),
            "ok",
            id="numpy 1 with older torch and deepspeed",
        ),
        pytest.param(
            packages(torch="2.2.2"), "2.2.2", deepspeed_live(), "skip", id="numpy is not installed"
        ),
        pytest.param(
            packages(numpy="2.0.0", deepspeed="0.14.3"),
            "2.3.1",
            deepspeed_live("BUFSIZE"),
            "fail",
            id="deepspeed 0.14.3 does not import with numpy 2",
        ),
        pytest.param(
            packages(numpy="2.0.0"),
            "2.2.2",
            deepspeed_live(),
            "warn",
            id="torch 2.2 was built for numpy 1",
        ),
        pytest.param(
            packages(numpy="2.0.0"),
            "2.3.0",
            deepspeed_live(),
            "ok",
            id="torch 2.3 is the first that was built for numpy 2",
        ),
    ],
)
def test_rows(found: Packages, torch: str, live: DeepSpeedLive, expected: str) -> None:
    facts: dict[str, Any] = {
        "packages": found,
        "torch_build": TorchBuild(version=torch),
        "deep_speed_live": live,
    }
    assert judge(numpy_abi_2.packages_know_numpy_2, **facts).status == expected
