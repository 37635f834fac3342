"""Rows of `gpu-overheating`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import gpu_overheating


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(
            Gpu(index=0, health=GpuHealth(temperature_c=80, temperature_slowdown_c=89)),
            "ok",
            id="9 degrees below the slowdown temperature",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(temperature_c=80)),
            "skip",
            id="the slowdown temperature is unknown",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(temperature_c=87, temperature_slowdown_c=89)),
            "warn",
            id="2 degrees below the slowdown temperature",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(temperature_c=89, temperature_slowdown_c=89)),
            "fail",
            id="the slowdown temperature is reached",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(temperature_memory_c=105, temperature_memory_max_c=105)),
            "warn",
            id="the memory is as hot as it may get",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(temperature_memory_c=105, temperature_memory_max_c=0)),
            "skip",
            id="a memory limit of 0 degrees is not a limit",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert judge(gpu_overheating.gpus_are_cool, gpus=Gpus(gpus=(fact,))).status == expected
