"""Rows of `row-remap-pending`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus, RunNeeds
from dsdoctor_checks.gpu import row_remap_pending
from tests.checks.gpu.support import NOT_SET, worst


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (Gpu(index=0, health=GpuHealth(remapped_rows_pending=False)), "ok"),
        (Gpu(index=0, health=GpuHealth()), "ok"),
        (Gpu(index=0, health=GpuHealth(remapped_rows_pending=True)), "warn"),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert (
        worst(row_remap_pending.no_row_is_pending, Gpus(gpus=(fact,)), RunNeeds(), NOT_SET)
        == expected
    )
