"""Rows of `power-capped`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import power_capped


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (
            Gpu(index=0, health=GpuHealth(power_limit_mw=700000, power_limit_default_mw=700000)),
            "ok",
        ),
        (Gpu(index=0, health=GpuHealth(power_limit_mw=None, power_limit_default_mw=None)), "skip"),
        (
            Gpu(index=0, health=GpuHealth(power_limit_mw=450000, power_limit_default_mw=350000)),
            "ok",
        ),
        (
            Gpu(index=0, health=GpuHealth(power_limit_mw=300000, power_limit_default_mw=700000)),
            "warn",
        ),
        (
            Gpu(
                index=0,
                name="NVIDIA GeForce RTX 4060 Laptop GPU",
                health=GpuHealth(power_limit_mw=35000, power_limit_default_mw=80000),
            ),
            "ok",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert judge(power_capped.power_is_free, gpus=Gpus(gpus=(fact,))).status == expected
