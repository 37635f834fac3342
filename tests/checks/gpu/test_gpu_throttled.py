"""Rows of `gpu-throttled`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import gpu_throttled


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (Gpu(index=0, health=GpuHealth(event_reasons=0)), "ok"),
        (Gpu(index=0, health=GpuHealth(event_reasons=1)), "ok"),
        (Gpu(index=0, health=GpuHealth(event_reasons=4)), "ok"),
        (Gpu(index=0, health=GpuHealth(event_reasons=1 << 40)), "ok"),
        (Gpu(index=0, health=GpuHealth(event_reasons=0x89)), "ok"),
        (Gpu(index=0, health=GpuHealth(event_reasons=0x41)), "warn"),
        (Gpu(index=0, health=GpuHealth(event_reasons=0x20)), "warn"),
        (Gpu(index=0, health=GpuHealth(event_reasons=0x48)), "fail"),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert judge(gpu_throttled.clocks_are_free, gpus=Gpus(gpus=(fact,))).status == expected
