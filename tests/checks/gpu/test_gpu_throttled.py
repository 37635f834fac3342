"""Rows of `gpu-throttled`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import gpu_throttled


def _locked(mhz: int, percent: int) -> Gpu:
    return Gpu(
        index=0,
        clock_sm_mhz=mhz,
        clock_sm_max_mhz=2100,
        utilization_gpu_percent=percent,
        health=GpuHealth(event_reasons=2),
    )


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(
            Gpu(index=0, health=GpuHealth(event_reasons=0)), "ok", id="nothing slows the clocks"
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(event_reasons=1)),
            "ok",
            id="clocks are low because the GPU is idle",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(event_reasons=4)),
            "ok",
            id="the software power cap slows the clocks, as it does on any busy GPU",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(event_reasons=1 << 40)),
            "ok",
            id="a reason that is not known yet",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(event_reasons=0x89)),
            "ok",
            id="a hardware slowdown on an idle GPU",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(event_reasons=0x41)),
            "warn",
            id="a hardware thermal slowdown on an idle GPU",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(event_reasons=0x20)),
            "warn",
            id="a software thermal slowdown",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(event_reasons=0x48)),
            "fail",
            id="a hardware thermal slowdown under load",
        ),
        pytest.param(_locked(210, 100), "warn", id="clocks are locked far down under load"),
        pytest.param(_locked(1400, 100), "ok", id="clocks are locked a little below the highest"),
        pytest.param(_locked(210, 3), "ok", id="locked clocks of a GPU with nothing to do"),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert judge(gpu_throttled.clocks_are_free, gpus=Gpus(gpus=(fact,))).status == expected
