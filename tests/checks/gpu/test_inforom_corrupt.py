"""Rows of `inforom-corrupt`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus, RunNeeds
from dsdoctor_checks.gpu import inforom_corrupt
from tests.checks.gpu.support import NOT_SET, worst


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (Gpu(index=0, health=GpuHealth(inforom_valid=True)), "ok"),
        (Gpu(index=0, health=GpuHealth()), "ok"),
        (Gpu(index=0, health=GpuHealth(inforom_valid=False)), "fail"),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert (
        worst(inforom_corrupt.inforom_is_valid, Gpus(gpus=(fact,)), RunNeeds(), NOT_SET) == expected
    )
