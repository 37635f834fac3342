"""Rows of `gpu-reset-required`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus, NvmlError
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import gpu_reset_required


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (Gpu(index=0, health=GpuHealth(recovery_action=0)), "ok"),
        (Gpu(index=0, health=GpuHealth()), "skip"),
        (Gpu(index=0, health=GpuHealth(recovery_action=12)), "ok"),
        (Gpu(index=0, health=GpuHealth(recovery_action=1)), "fail"),
        (Gpu(index=0, health=GpuHealth(recovery_action=7)), "fail"),
        (Gpu(index=0, health=GpuHealth(recovery_action=3)), "warn"),
        (
            Gpu(
                index=0,
                error=NvmlError(
                    code=16, name="RESET_REQUIRED", message="m", call="nvmlDeviceGetName"
                ),
            ),
            "fail",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert judge(gpu_reset_required.no_recovery_is_due, gpus=Gpus(gpus=(fact,))).status == expected
