"""Rows of `inforom-corrupt`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import inforom_corrupt


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(
            Gpu(index=0, health=GpuHealth(inforom_valid=True)),
            "ok",
            id="the checksum of the InfoROM is right",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth()), "skip", id="the GPU has no InfoROM to report"
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(inforom_valid=False)),
            "fail",
            id="the checksum of the InfoROM is wrong",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert judge(inforom_corrupt.inforom_is_valid, gpus=Gpus(gpus=(fact,))).status == expected
