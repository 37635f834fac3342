from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.testing import judge
from dsdoctor_checks.cuda import nvcc_unusable
from tests.checks import machines as m

CHECK = nvcc_unusable.nvcc_reports_version


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
            id="nvcc reports its version",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
            id="no toolkit is installed",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(
                    m.toolkit(version=None, error="its output is not text")
                ),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": m.ADAM,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["fail"],
            id="nvcc prints garbage, and the optimizer must be built",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(
                    m.toolkit(version=None, error="its output is not text")
                ),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["warn"],
            id="nvcc prints garbage, and no config is given",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(
                    m.toolkit(version=None, error="its output is not text")
                ),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": m.OFFLOAD,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["skip"],
            id="nvcc prints garbage, but CPU offload is built without it",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit(), m.toolkit(version=None, error="exit 126")),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
            id="the nvcc that is not used does not start",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
