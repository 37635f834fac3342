"""Rows of `gpu-overheating`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import gpu_overheating


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (Gpu(index=0, health=GpuHealth(temperature_c=80, temperature_slowdown_c=89)), "ok"),
        (Gpu(index=0, health=GpuHealth(temperature_c=80)), "skip"),
        (Gpu(index=0, health=GpuHealth(temperature_c=87, temperature_slowdown_c=89)), "warn"),
        (Gpu(index=0, health=GpuHealth(temperature_c=89, temperature_slowdown_c=89)), "fail"),
        (
            Gpu(index=0, health=GpuHealth(temperature_memory_c=105, temperature_memory_max_c=105)),
            "warn",
        ),
        (
            Gpu(index=0, health=GpuHealth(temperature_memory_c=105, temperature_memory_max_c=0)),
            "skip",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert judge(gpu_overheating.gpus_are_cool, gpus=Gpus(gpus=(fact,))).status == expected
