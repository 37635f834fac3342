"""Rows of `gpu-reset-required`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus, NvmlError
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import gpu_reset_required


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(
            Gpu(index=0, health=GpuHealth(recovery_action=0)),
            "ok",
            id="the driver asks for nothing",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth()), "skip", id="the driver does not report an action"
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(recovery_action=12)),
            "ok",
            id="an action that is not known yet",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(recovery_action=1)),
            "fail",
            id="the driver asks for a GPU reset",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(recovery_action=7)),
            "fail",
            id="the driver asks for a reboot of the system",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(recovery_action=3)),
            "warn",
            id="the driver asks for peer-to-peer traffic to end",
        ),
        pytest.param(
            Gpu(
                index=0,
                error=NvmlError(
                    code=16, name="RESET_REQUIRED", message="m", call="nvmlDeviceGetName"
                ),
            ),
            "fail",
            id="an older driver reports the reset as an error",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert judge(gpu_reset_required.no_recovery_is_due, gpus=Gpus(gpus=(fact,))).status == expected
