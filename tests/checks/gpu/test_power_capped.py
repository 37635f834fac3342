"""Rows of `power-capped`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import power_capped


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(
            Gpu(index=0, health=GpuHealth(power_limit_mw=700000, power_limit_default_mw=700000)),
            "ok",
            id="the limit is the default of 700 W",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(power_limit_mw=None, power_limit_default_mw=None)),
            "skip",
            id="the GPU does not report power limits",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(power_limit_mw=450000, power_limit_default_mw=350000)),
            "ok",
            id="the limit was raised above the default",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(power_limit_mw=300000, power_limit_default_mw=700000)),
            "warn",
            id="the limit was lowered from 700 W to 300 W",
        ),
        pytest.param(
            Gpu(
                index=0,
                name="NVIDIA GeForce RTX 4060 Laptop GPU",
                health=GpuHealth(power_limit_mw=35000, power_limit_default_mw=80000),
            ),
            "ok",
            id="a laptop lowers the limit of its GPU by design",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert judge(power_capped.power_is_free, gpus=Gpus(gpus=(fact,))).status == expected
