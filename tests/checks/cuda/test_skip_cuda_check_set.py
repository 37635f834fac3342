from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.testing import judge
from dsdoctor_checks.cuda import skip_cuda_check_set
from tests.checks import machines as m

CHECK = skip_cuda_check_set.cuda_check_is_on


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            {
                "environment": m.NO_ENV,
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit()),
                "deep_speed_install": m.DEEPSPEED,
            },
            ["ok"],
            id="the variable is not set",
        ),
        pytest.param(
            {
                "environment": m.env(DS_SKIP_CUDA_CHECK="1"),
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("11.8")),
                "deep_speed_install": m.DEEPSPEED,
            },
            ["warn"],
            id="the check is off while the toolkit does not match",
        ),
        pytest.param(
            {
                "environment": m.env(DS_SKIP_CUDA_CHECK="1"),
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("12.8")),
                "deep_speed_install": m.DEEPSPEED,
            },
            ["ok"],
            id="the check is off although the toolkit matches",
        ),
        pytest.param(
            {
                "environment": m.env(DS_SKIP_CUDA_CHECK="true"),
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("11.8")),
                "deep_speed_install": m.DEEPSPEED,
            },
            ["warn"],
            id="the variable has a value that DeepSpeed does not read",
        ),
        pytest.param(
            {
                "environment": m.env(DS_SKIP_CUDA_CHECK="0"),
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("11.8")),
                "deep_speed_install": m.DEEPSPEED,
            },
            ["ok"],
            id="the variable is set to 0",
        ),
        pytest.param(
            {
                "environment": m.env(DS_SKIP_CUDA_CHECK="1"),
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(),
                "deep_speed_install": m.DEEPSPEED,
            },
            ["skip"],
            id="the check is off and no toolkit is installed",
        ),
        pytest.param(
            {
                "environment": m.env(DS_SKIP_CUDA_CHECK="1"),
                "torch_build": m.torch("2.13.0+cpu", None),
                "cuda_toolkits": m.toolkits(m.toolkit("12.8")),
                "deep_speed_install": m.DEEPSPEED,
            },
            ["skip"],
            id="the check is off for a torch build for CPUs",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
