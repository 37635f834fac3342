"""Rows of `inforom-corrupt`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import inforom_corrupt


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (Gpu(index=0, health=GpuHealth(inforom_valid=True)), "ok"),
        (Gpu(index=0, health=GpuHealth()), "skip"),
        (Gpu(index=0, health=GpuHealth(inforom_valid=False)), "fail"),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert judge(inforom_corrupt.inforom_is_valid, gpus=Gpus(gpus=(fact,))).status == expected
