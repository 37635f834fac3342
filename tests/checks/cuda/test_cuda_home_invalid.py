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
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit()),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
            id="a complete toolkit",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(cuda_home_missing="/opt/gone"),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["warn"],
            id="CUDA_HOME names a folder that is gone",
        ),
        pytest.param(
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
            id="CUDA_HOME names a folder that is gone, and the optimizer must be built",
        ),
        pytest.param(
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
            id="CUDA_HOME names a folder without nvcc, and the optimizer must be built",
        ),
        pytest.param(
            {
                "torch_build": m.torch("2.13.0+cpu", None),
                "cuda_toolkits": m.toolkits(cuda_home_missing="/opt/gone"),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["skip"],
            id="a torch build for CPUs does not use CUDA_HOME",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
