"""Rows of `gsp-version-mismatch`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, Gpus, Nvml
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import gsp_version_mismatch


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(
            Gpu(index=0, gsp_enabled=True, gsp_version="580.1"),
            "ok",
            id="the firmware has the version of the driver",
        ),
        pytest.param(Gpu(index=0), "skip", id="the GPU does not report its firmware"),
        pytest.param(
            Gpu(index=0, gsp_enabled=False, gsp_version="570.1"),
            "ok",
            id="the firmware differs but is not in use",
        ),
        pytest.param(
            Gpu(index=0, gsp_enabled=True, gsp_version="570.1"),
            "warn",
            id="the firmware in use is older than the driver",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert (
        judge(
            gsp_version_mismatch.firmware_is_the_drivers,
            gpus=Gpus(gpus=(fact,)),
            nvml=Nvml(driver_version="580.1"),
        ).status
        == expected
    )
