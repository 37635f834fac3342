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
        (packages(numpy="2.3.1", deepspeed="0.19.8"), "2.13.0", deepspeed_live(), "ok"),
        (packages(numpy="1.26.4", deepspeed="0.14.0"), "2.2.2", deepspeed_live(), "ok"),
        (packages(torch="2.2.2"), "2.2.2", deepspeed_live(), "skip"),
        (packages(numpy="2.0.0", deepspeed="0.14.3"), "2.3.1", deepspeed_live("BUFSIZE"), "fail"),
        (packages(numpy="2.0.0"), "2.2.2", deepspeed_live(), "warn"),
        (packages(numpy="2.0.0"), "2.3.0", deepspeed_live(), "ok"),
    ],
)
def test_rows(found: Packages, torch: str, live: DeepSpeedLive, expected: str) -> None:
    facts: dict[str, Any] = {
        "packages": found,
        "torch_build": TorchBuild(version=torch),
        "deep_speed_live": live,
    }
    assert judge(numpy_abi_2.packages_know_numpy_2, **facts).status == expected
