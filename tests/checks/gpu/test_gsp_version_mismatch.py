"""Rows of `gsp-version-mismatch`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, Gpus, Nvml
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import gsp_version_mismatch


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (Gpu(index=0, gsp_enabled=True, gsp_version="580.1"), "ok"),
        (Gpu(index=0), "skip"),
        (Gpu(index=0, gsp_enabled=False, gsp_version="570.1"), "ok"),
        (Gpu(index=0, gsp_enabled=True, gsp_version="570.1"), "warn"),
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
