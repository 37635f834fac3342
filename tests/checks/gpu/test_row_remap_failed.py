"""Rows of `row-remap-failed`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import row_remap_failed


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(
            Gpu(
                index=0, health=GpuHealth(remapped_rows_failure=False, remapped_rows_uncorrected=3)
            ),
            "ok",
            id="three rows were replaced and none failed",
        ),
        pytest.param(Gpu(index=0, health=GpuHealth()), "skip", id="the GPU does not remap rows"),
        pytest.param(
            Gpu(index=0, health=GpuHealth(remapped_rows_failure=True)),
            "fail",
            id="a row could not be replaced",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(remapped_rows_uncorrected=513)),
            "fail",
            id="513 rows were replaced, more than there are spares",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert judge(row_remap_failed.rows_were_replaced, gpus=Gpus(gpus=(fact,))).status == expected
