"""Rows of `gpu-count-unexpected`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpus, RunNeeds
from dsdoctor_checks.gpu import gpu_count_unexpected
from tests.checks.gpu.support import worst


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (RunNeeds(), "ok"),
        (RunNeeds(expect_gpus=8), "ok"),
        (RunNeeds(expect_gpus=4), "ok"),
        (RunNeeds(expect_gpus=9), "fail"),
    ],
)
def test_rows(fact: RunNeeds, expected: str) -> None:
    assert worst(gpu_count_unexpected.gpus_are_complete, Gpus(count=8), fact) == expected
