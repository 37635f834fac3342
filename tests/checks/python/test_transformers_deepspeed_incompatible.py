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
        pytest.param(
            packages(transformers="5.23.0", deepspeed="0.19.8"),
            RunNeeds(),
            "ok",
            id="transformers 5.23 with deepspeed 0.19.8",
        ),
        pytest.param(
            packages(transformers="5.23.0", deepspeed="0.19.8", accelerate="1.15.0"),
            AUTO,
            "ok",
            id="transformers 5.23 does not turn an auto warm-up into 0",
        ),
        pytest.param(
            packages(transformers="5.1.0", torch="2.3.0+cu121", deepspeed="0.16.4"),
            RunNeeds(),
            "fail",
            id="torch 2.3 is too old for transformers 5.1",
        ),
        pytest.param(
            packages(transformers="5.1.0", torch="2.3.0+cu121"),
            RunNeeds(),
            "fail",
            id="the same without deepspeed",
        ),
        pytest.param(
            packages(transformers="5.0.0", torch="2.3.0+cu121", deepspeed="0.16.4"),
            RunNeeds(),
            "ok",
            id="torch 2.3 is new enough for transformers 5.0",
        ),
        pytest.param(
            packages(transformers="4.51.3", torch="2.0.1", deepspeed="0.16.4", accelerate="0.34.0"),
            RunNeeds(),
            "ok",
            id="transformers 4.51 asks for neither",
        ),
        pytest.param(
            packages(transformers="4.52.3", deepspeed="0.16.4", accelerate="0.34.0"),
            RunNeeds(),
            "fail",
            id="accelerate 0.34 does not know what the Trainer of 4.52 passes",
        ),
        pytest.param(
            packages(transformers="4.52.3", deepspeed="0.16.4", accelerate="1.3.0"),
            RunNeeds(),
            "ok",
            id="accelerate 1.3 does",
        ),
        pytest.param(
            packages(deepspeed="0.9.0"), RunNeeds(), "skip", id="transformers is not installed"
        ),
        pytest.param(
            packages(transformers="5.23.0", deepspeed="0.9.2"),
            RunNeeds(),
            "fail",
            id="deepspeed 0.9.2 is too old for transformers 5.23",
        ),
        pytest.param(
            packages(transformers="5.23.0", deepspeed="0.19.8", accelerate="1.0.1"),
            RunNeeds(),
            "fail",
            id="accelerate 1.0.1 is too old for transformers 5.23",
        ),
        pytest.param(
            packages(transformers="4.57.1", deepspeed="0.19.8"),
            AUTO,
            "warn",
            id="deepspeed 0.19.8 rejects the warm-up of 0 that transformers 4.57 fills in",
        ),
        pytest.param(
            packages(transformers="4.57.1", deepspeed="0.19.8"),
            RunNeeds(),
            "ok",
            id="transformers 4.57 and deepspeed 0.19.8 without an auto warm-up",
        ),
        pytest.param(
            packages(transformers="4.57.1", deepspeed="0.18.0"),
            AUTO,
            "ok",
            id="deepspeed 0.18 takes the warm-up of 0 that transformers 4.57 fills in",
        ),
        pytest.param(
            packages(transformers="4.31.0", deepspeed="0.8.3"),
            RunNeeds(),
            "warn",
            id="transformers 4.31 asks for deepspeed 0.9.3",
        ),
        pytest.param(
            packages(transformers="4.30.2", deepspeed="0.8.3"),
            RunNeeds(),
            "ok",
            id="transformers 4.30 takes deepspeed 0.8.3",
        ),
        pytest.param(
            packages(transformers="4.14.1", deepspeed="0.5.3"),
            RunNeeds(),
            "warn",
            id="transformers 4.14.1 asks for deepspeed 0.5.7",
        ),
        pytest.param(
            packages(transformers="4.5.1", deepspeed="0.3.10"),
            RunNeeds(),
            "ok",
            id="nothing is known of what transformers 4.5 asks for",
        ),
    ],
)
def test_rows(found: Packages, run: RunNeeds, expected: str) -> None:
    check = transformers_deepspeed_incompatible.transformers_suits_deepspeed
    assert judge(check, packages=found, run_needs=run).status == expected
