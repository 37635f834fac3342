from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.precision import bf16_unsupported
from tests.checks import machines as m

CHECK = bf16_unsupported.hardware_has_bf16


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            {
                "gpus": m.gpus("A100"),
                "torch_build": m.torch(),
                "run_needs": RunNeeds(config={"bf16": {"enabled": True}}),
                "environment": m.NO_ENV,
            },
            ["ok"],
            id="bf16 on an A100",
        ),
        pytest.param(
            {
                "gpus": m.gpus("V100"),
                "torch_build": m.torch(),
                "run_needs": RunNeeds(config={"bf16": {"enabled": True}}),
                "environment": m.NO_ENV,
            },
            ["fail"],
            id="bf16 on a V100",
        ),
        pytest.param(
            {
                "gpus": m.gpus("T4"),
                "torch_live": m.live(bf16_emulated=True),
                "torch_build": m.torch(),
                "run_needs": RunNeeds(config={"bf16": {"enabled": True}}),
                "environment": m.NO_ENV,
            },
            ["fail"],
            id="bf16 on a T4 is emulated at best",
        ),
        pytest.param(
            {"gpus": m.gpus("T4"), "torch_build": m.torch(), "environment": m.NO_ENV},
            ["skip"],
            id="no config on a T4",
        ),
        pytest.param(
            {
                "gpus": m.gpus("T4"),
                "torch_build": m.torch(),
                "run_needs": RunNeeds(config={"bf16": {"enabled": "auto"}}),
                "environment": m.NO_ENV,
            },
            ["skip"],
            id="an auto bf16 on a T4",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "run_needs": RunNeeds(config={"bf16": {"enabled": True}}),
                "environment": m.NO_ENV,
            },
            ["skip"],
            id="bf16, and the GPUs are unknown",
        ),
        pytest.param(
            {
                "gpus": m.gpus("T4"),
                "torch_build": m.torch(),
                "run_needs": RunNeeds(config={"bfloat16": {"enabled": True}}),
                "environment": m.NO_ENV,
            },
            ["fail"],
            id="the older name of bf16 on a T4",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
