"""Rows of `row-remap-failed`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import row_remap_failed


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (
            Gpu(
                index=0, health=GpuHealth(remapped_rows_failure=False, remapped_rows_uncorrected=3)
            ),
            "ok",
        ),
        (Gpu(index=0, health=GpuHealth()), "skip"),
        (Gpu(index=0, health=GpuHealth(remapped_rows_failure=True)), "fail"),
        (Gpu(index=0, health=GpuHealth(remapped_rows_uncorrected=513)), "fail"),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert judge(row_remap_failed.rows_were_replaced, gpus=Gpus(gpus=(fact,))).status == expected
