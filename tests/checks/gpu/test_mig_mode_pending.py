"""Rows of `mig-mode-pending`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, Gpus
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import mig_mode_pending


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(
            Gpu(index=0, mig_mode=False, mig_mode_pending=False),
            "ok",
            id="MIG is off and stays off",
        ),
        pytest.param(
            Gpu(index=0, mig_mode=True, mig_mode_pending=True), "ok", id="MIG is on and stays on"
        ),
        pytest.param(Gpu(index=0), "skip", id="the GPU does not know MIG"),
        pytest.param(
            Gpu(index=0, mig_mode=False, mig_mode_pending=True),
            "warn",
            id="MIG will be on after the next reset",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert judge(mig_mode_pending.mig_mode_is_settled, gpus=Gpus(gpus=(fact,))).status == expected
