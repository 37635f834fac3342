"""Rows of `gpu-count-unexpected`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpus, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import gpu_count_unexpected


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (RunNeeds(), "skip"),
        (RunNeeds(expect_gpus=8), "ok"),
        (RunNeeds(expect_gpus=4), "ok"),
        (RunNeeds(expect_gpus=9), "fail"),
    ],
)
def test_rows(fact: RunNeeds, expected: str) -> None:
    assert (
        judge(gpu_count_unexpected.gpus_are_complete, gpus=Gpus(count=8), run_needs=fact).status
        == expected
    )
