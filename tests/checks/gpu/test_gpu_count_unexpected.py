"""Rows of `gpu-count-unexpected`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpus, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import gpu_count_unexpected


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(RunNeeds(), "skip", id="nothing says how many GPUs are expected"),
        pytest.param(RunNeeds(expect_gpus=8), "ok", id="all 8 expected GPUs are there"),
        pytest.param(RunNeeds(expect_gpus=4), "ok", id="more GPUs than the 4 expected"),
        pytest.param(RunNeeds(expect_gpus=9), "fail", id="8 GPUs where 9 are expected"),
    ],
)
def test_rows(fact: RunNeeds, expected: str) -> None:
    assert (
        judge(gpu_count_unexpected.gpus_are_complete, gpus=Gpus(count=8), run_needs=fact).status
        == expected
    )
