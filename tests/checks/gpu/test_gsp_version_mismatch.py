"""Rows of `gsp-version-mismatch`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, Gpus, Nvml, RunNeeds
from dsdoctor_checks.gpu import gsp_version_mismatch
from tests.checks.gpu.support import NOT_SET, worst


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (Gpu(index=0, gsp_enabled=True, gsp_version="580.1"), "ok"),
        (Gpu(index=0), "ok"),
        (Gpu(index=0, gsp_enabled=False, gsp_version="570.1"), "ok"),
        (Gpu(index=0, gsp_enabled=True, gsp_version="570.1"), "warn"),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert (
        worst(
            gsp_version_mismatch.firmware_is_the_drivers,
            Gpus(gpus=(fact,)),
            Nvml(driver_version="580.1"),
            RunNeeds(),
            NOT_SET,
        )
        == expected
    )
