"""Rows of `ecc-mode-pending`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, Gpus
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import ecc_mode_pending


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(
            Gpu(index=0, ecc_mode=False, ecc_mode_pending=False),
            "ok",
            id="ECC is off and stays off",
        ),
        pytest.param(Gpu(index=0), "skip", id="the GPU does not report its ECC mode"),
        pytest.param(
            Gpu(index=0, ecc_mode=True, ecc_mode_pending=False),
            "warn",
            id="ECC is on and will be off after the next reset",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert judge(ecc_mode_pending.ecc_mode_is_settled, gpus=Gpus(gpus=(fact,))).status == expected
