"""Rows of `power-capped`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus, RunNeeds
from dsdoctor_checks.gpu import power_capped
from tests.checks.gpu.support import NOT_SET, worst


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (
            Gpu(index=0, health=GpuHealth(power_limit_mw=700000, power_limit_default_mw=700000)),
            "ok",
        ),
        (Gpu(index=0, health=GpuHealth(power_limit_mw=None, power_limit_default_mw=None)), "ok"),
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
    assert (
        worst(
            power_capped.power_is_free,
            Gpus(gpus=(fact,)),
            RunNeeds(),
            NOT_SET,
            power_capped.PowerLimits(),
        )
        == expected
    )
