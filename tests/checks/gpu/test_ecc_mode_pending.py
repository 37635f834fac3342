"""Rows of `ecc-mode-pending`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, Gpus, RunNeeds
from dsdoctor_checks.gpu import ecc_mode_pending
from tests.checks.gpu.support import NOT_SET, worst


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (Gpu(index=0, ecc_mode=False, ecc_mode_pending=False), "ok"),
        (Gpu(index=0), "ok"),
        (Gpu(index=0, ecc_mode=True, ecc_mode_pending=False), "warn"),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert (
        worst(ecc_mode_pending.ecc_mode_is_settled, Gpus(gpus=(fact,)), RunNeeds(), NOT_SET)
        == expected
    )
