"""Rows of `mig-enabled-multi-gpu`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Environment, Gpu, Gpus, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import mig_enabled_multi_gpu

GPUS = Gpus(gpus=(Gpu(index=0, mig_mode=True), Gpu(index=1, mig_mode=True)))


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (RunNeeds(), "ok"),
        (RunNeeds(gpus=("0",)), "ok"),
        (RunNeeds(gpus=("0", "1")), "warn"),
        (RunNeeds(expect_gpus=2), "warn"),
    ],
)
def test_rows(fact: RunNeeds, expected: str) -> None:
    assert (
        judge(
            mig_enabled_multi_gpu.several_gpus_are_whole,
            gpus=GPUS,
            run_needs=fact,
            environment=Environment(),
        ).status
        == expected
    )
