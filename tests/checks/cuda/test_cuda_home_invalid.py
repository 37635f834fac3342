from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.testing import judge
from dsdoctor_checks.cuda import cuda_home_invalid
from tests.checks import machines as m

CHECK = cuda_home_invalid.cuda_home_is_toolkit


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
                "cuda_toolkits": m.toolkits(cuda_home_missing="/opt/gone"),
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
                "cuda_toolkits": m.toolkits(cuda_home_missing="/opt/gone"),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": m.ADAM,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["fail"],
        ),
        (
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit(nvcc=None, version=None), how="CUDA_HOME"),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": m.ADAM,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["fail"],
        ),
        (
            {
                "torch_build": m.torch("2.13.0+cpu", None),
                "cuda_toolkits": m.toolkits(cuda_home_missing="/opt/gone"),
                "deep_speed_install": m.DEEPSPEED,
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
