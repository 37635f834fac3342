from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import DeepSpeedInstall, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.precision import fp16_unsupported
from tests.checks import machines as m

CHECK = fp16_unsupported.deepspeed_accepts_fp16


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            {
                "gpus": m.gpus("V100"),
                "run_needs": RunNeeds(config={"fp16": {"enabled": True}}),
                "environment": m.NO_ENV,
            },
            ["ok"],
            id="fp16 on a V100",
        ),
        pytest.param(
            {
                "gpus": m.gpus("P100"),
                "run_needs": RunNeeds(config={"fp16": {"enabled": True}}),
                "environment": m.NO_ENV,
            },
            ["fail"],
            id="fp16 on a P100",
        ),
        pytest.param(
            {
                "gpus": m.gpus("P100"),
                "run_needs": RunNeeds(config={"fp16": {"enabled": True}}),
                "environment": m.env(DS_ALLOW_DEPRECATED_FP16="1"),
            },
            ["ok"],
            id="fp16 on a P100 that the user allows",
        ),
        pytest.param(
            {
                "gpus": m.gpus("P100"),
                "run_needs": RunNeeds(config={"fp16": {"enabled": True}}),
                "environment": m.NO_ENV,
                "deep_speed_install": DeepSpeedInstall(version="0.12.6"),
            },
            ["ok"],
            id="fp16 on a P100 under a DeepSpeed that does not refuse it",
        ),
        pytest.param(
            {
                "gpus": m.gpus("P100"),
                "run_needs": RunNeeds(config={"fp16": {"enabled": True}}),
                "environment": m.NO_ENV,
                "deep_speed_install": DeepSpeedInstall(version="0.13.1"),
            },
            ["fail"],
            id="fp16 on a P100 under the first DeepSpeed that refuses it",
        ),
        pytest.param(
            {"gpus": m.gpus("P100"), "environment": m.NO_ENV}, ["skip"], id="no config on a P100"
        ),
        pytest.param(
            {"run_needs": RunNeeds(config={"fp16": {"enabled": True}}), "environment": m.NO_ENV},
            ["skip"],
            id="fp16, and the GPUs are unknown",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
