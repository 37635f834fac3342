"""Rows of `page-retirement-pending`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import page_retirement_pending


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(
            Gpu(index=0, health=GpuHealth(retired_pages_pending=False, retired_pages_double_bit=3)),
            "ok",
            id="three pages were retired and none is pending",
        ),
        pytest.param(Gpu(index=0, health=GpuHealth()), "skip", id="the GPU does not retire pages"),
        pytest.param(
            Gpu(index=0, health=GpuHealth(retired_pages_pending=True)),
            "warn",
            id="a page waits for a reboot to be retired",
        ),
        pytest.param(
            Gpu(
                index=0, health=GpuHealth(retired_pages_double_bit=40, retired_pages_single_bit=20)
            ),
            "fail",
            id="60 pages were retired, so the board should be returned",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert (
        judge(page_retirement_pending.no_page_is_pending, gpus=Gpus(gpus=(fact,))).status
        == expected
    )
