"""Rows of `row-remap-pending`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import row_remap_pending


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(
            Gpu(index=0, health=GpuHealth(remapped_rows_pending=False)),
            "ok",
            id="no row waits to be replaced",
        ),
        pytest.param(Gpu(index=0, health=GpuHealth()), "skip", id="the GPU does not remap rows"),
        pytest.param(
            Gpu(index=0, health=GpuHealth(remapped_rows_pending=True)),
            "warn",
            id="a row waits for a reset to be replaced",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert judge(row_remap_pending.no_row_is_pending, gpus=Gpus(gpus=(fact,))).status == expected
