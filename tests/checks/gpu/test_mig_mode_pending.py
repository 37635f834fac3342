"""Rows of `mig-mode-pending`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, Gpus, RunNeeds
from dsdoctor_checks.gpu import mig_mode_pending
from tests.checks.gpu.support import NOT_SET, worst


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (Gpu(index=0, mig_mode=False, mig_mode_pending=False), "ok"),
        (Gpu(index=0, mig_mode=True, mig_mode_pending=True), "ok"),
        (Gpu(index=0), "ok"),
        (Gpu(index=0, mig_mode=False, mig_mode_pending=True), "warn"),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert (
        worst(mig_mode_pending.mig_mode_is_settled, Gpus(gpus=(fact,)), RunNeeds(), NOT_SET)
        == expected
    )
