"""Rows of `page-retirement-pending`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus, RunNeeds
from dsdoctor_checks.gpu import page_retirement_pending
from tests.checks.gpu.support import NOT_SET, worst


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (
            Gpu(index=0, health=GpuHealth(retired_pages_pending=False, retired_pages_double_bit=3)),
            "ok",
        ),
        (Gpu(index=0, health=GpuHealth()), "ok"),
        (Gpu(index=0, health=GpuHealth(retired_pages_pending=True)), "warn"),
        (
            Gpu(
                index=0, health=GpuHealth(retired_pages_double_bit=40, retired_pages_single_bit=20)
            ),
            "fail",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert (
        worst(
            page_retirement_pending.no_page_is_pending,
            Gpus(gpus=(fact,)),
            RunNeeds(),
            NOT_SET,
            page_retirement_pending.PageLimits(),
        )
        == expected
    )
