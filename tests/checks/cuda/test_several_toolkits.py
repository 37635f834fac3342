from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.testing import judge
from dsdoctor_checks.cuda import several_toolkits
from tests.checks import machines as m

CHECK = several_toolkits.best_toolkit_is_chosen


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit()),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
        ),
        (
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("12.8"), m.toolkit("11.8")),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
        ),
        (
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("11.8"), m.toolkit("12.8")),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["warn"],
        ),
        (
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("11.8"), m.toolkit("12.4")),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
        ),
        (
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("11.8"), m.toolkit("12.8")),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": m.OFFLOAD,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["skip"],
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
