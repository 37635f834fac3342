from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.precision import fp16_unsupported
from tests.checks import machines as m

CHECK = fp16_unsupported.deepspeed_accepts_fp16


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            {
                "gpus": m.gpus("V100"),
                "run_needs": RunNeeds(config={"fp16": {"enabled": True}}),
                "environment": m.NO_ENV,
            },
            ["ok"],
        ),
        (
            {
                "gpus": m.gpus("P100"),
                "run_needs": RunNeeds(config={"fp16": {"enabled": True}}),
                "environment": m.NO_ENV,
            },
            ["fail"],
        ),
        (
            {
                "gpus": m.gpus("P100"),
                "run_needs": RunNeeds(config={"fp16": {"enabled": True}}),
                "environment": m.env(DS_ALLOW_DEPRECATED_FP16="1"),
            },
            ["ok"],
        ),
        ({"gpus": m.gpus("P100"), "environment": m.NO_ENV}, ["skip"]),
        (
            {"run_needs": RunNeeds(config={"fp16": {"enabled": True}}), "environment": m.NO_ENV},
            ["skip"],
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
