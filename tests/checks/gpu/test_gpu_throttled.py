"""Rows of `gpu-throttled`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus, RunNeeds
from dsdoctor_checks.gpu import gpu_throttled
from tests.checks.gpu.support import NOT_SET, worst


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
    assert worst(gpu_throttled.clocks_are_free, Gpus(gpus=(fact,)), RunNeeds(), NOT_SET) == expected
