"""Rows of `transformers-deepspeed-incompatible`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Packages, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.python import transformers_deepspeed_incompatible
from tests.checks.python.support import packages

AUTO = RunNeeds(config={"scheduler": {"params": {"warmup_num_steps": "auto"}}})


@pytest.mark.parametrize(
    ("found", "run", "expected"),
    [
        (packages(transformers="5.23.0", deepspeed="0.19.8"), RunNeeds(), "ok"),
        (packages(transformers="5.23.0", deepspeed="0.19.8", accelerate="1.15.0"), AUTO, "ok"),
        (packages(deepspeed="0.9.0"), RunNeeds(), "skip"),
        (packages(transformers="5.23.0", deepspeed="0.9.2"), RunNeeds(), "fail"),
        (
            packages(transformers="5.23.0", deepspeed="0.19.8", accelerate="1.0.1"),
            RunNeeds(),
            "fail",
        ),
        (packages(transformers="4.57.1", deepspeed="0.19.8"), AUTO, "warn"),
        (packages(transformers="4.57.1", deepspeed="0.19.8"), RunNeeds(), "ok"),
        (packages(transformers="4.57.1", deepspeed="0.18.0"), AUTO, "ok"),
    ],
)
def test_rows(found: Packages, run: RunNeeds, expected: str) -> None:
    check = transformers_deepspeed_incompatible.transformers_suits_deepspeed
    assert judge(check, packages=found, run_needs=run).status == expected
