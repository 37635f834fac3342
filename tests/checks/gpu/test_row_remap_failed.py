"""Rows of `row-remap-failed`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus, RunNeeds
from dsdoctor_checks.gpu import row_remap_failed
from tests.checks.gpu.support import NOT_SET, worst


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (
            Gpu(
                index=0, health=GpuHealth(remapped_rows_failure=False, remapped_rows_uncorrected=3)
            ),
            "ok",
        ),
        (Gpu(index=0, health=GpuHealth()), "ok"),
        (Gpu(index=0, health=GpuHealth(remapped_rows_failure=True)), "fail"),
        (Gpu(index=0, health=GpuHealth(remapped_rows_uncorrected=513)), "fail"),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert (
        worst(
            row_remap_failed.rows_were_replaced,
            Gpus(gpus=(fact,)),
            RunNeeds(),
            NOT_SET,
            row_remap_failed.RemapLimits(),
        )
        == expected
    )
