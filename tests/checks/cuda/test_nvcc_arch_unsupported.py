from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.cuda import nvcc_arch_unsupported
from tests.checks import machines as m

CHECK = nvcc_arch_unsupported.nvcc_supports_gpus


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("12.8")),
                "deep_speed_install": m.DEEPSPEED,
                "gpus": m.gpus("A100", "5090"),
                "run_needs": m.ADAM,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
            },
            ["ok"],
            id="nvcc 12.8 compiles for an A100 and an RTX 5090",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("12.4")),
                "deep_speed_install": m.DEEPSPEED,
                "gpus": m.gpus("5090"),
                "run_needs": m.ADAM,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
            },
            ["fail"],
            id="nvcc 12.4 is too old for an RTX 5090",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("12.4")),
                "deep_speed_install": m.DEEPSPEED,
                "gpus": m.gpus("5090"),
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
            },
            ["warn"],
            id="nvcc 12.4 is too old for an RTX 5090, and no config is given",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("11.7")),
                "deep_speed_install": m.DEEPSPEED,
                "gpus": m.gpus("4090"),
                "run_needs": m.ADAM,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
            },
            ["fail"],
            id="nvcc 11.7 is too old for an RTX 4090",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("13.0")),
                "deep_speed_install": m.DEEPSPEED,
                "gpus": m.gpus("V100"),
                "run_needs": m.ADAM,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
            },
            ["fail"],
            id="nvcc 13.0 no longer compiles for a V100",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("14.0")),
                "deep_speed_install": m.DEEPSPEED,
                "gpus": m.gpus("V100"),
                "run_needs": m.ADAM,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
            },
            ["skip"],
            id="an nvcc that the table does not know yet",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("12.8")),
                "deep_speed_install": m.DEEPSPEED,
                "gpus": m.gpus("A100"),
                "run_needs": m.ADAM,
                "environment": m.env(TORCH_CUDA_ARCH_LIST="8.0;9.0+PTX"),
                "nvidia_kernel": m.kernel(),
            },
            ["ok"],
            id="the list of architectures has that of the A100",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("12.8")),
                "deep_speed_install": m.DEEPSPEED,
                "gpus": m.gpus("A100"),
                "run_needs": m.ADAM,
                "environment": m.env(TORCH_CUDA_ARCH_LIST="9.0"),
                "nvidia_kernel": m.kernel(),
            },
            ["fail"],
            id="the list of architectures lacks that of the A100",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("12.8")),
                "deep_speed_install": m.DEEPSPEED,
                "gpus": m.gpus("5090"),
                "run_needs": m.ADAM,
                "environment": m.env(TORCH_CUDA_ARCH_LIST="8.0+PTX"),
                "nvidia_kernel": m.kernel(),
            },
            ["ok"],
            id="PTX of an older architecture runs on an RTX 5090",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("12.8")),
                "deep_speed_install": m.DEEPSPEED,
                "gpus": m.gpus("A100"),
                "run_needs": m.ADAM,
                "environment": m.env(TORCH_CUDA_ARCH_LIST="Ampere"),
                "nvidia_kernel": m.kernel(),
            },
            ["ok"],
            id="the architecture of the A100 by its name",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("13.0")),
                "deep_speed_install": m.DEEPSPEED,
                "gpus": m.gpus("A100"),
                "run_needs": RunNeeds(build_ops=("FUSED_ADAM",)),
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
            },
            ["fail"],
            id="nvcc 13.0 refuses an architecture that DeepSpeed builds for by default",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("13.0")),
                "deep_speed_install": m.DEEPSPEED,
                "gpus": m.gpus("A100"),
                "run_needs": RunNeeds(build_ops=("FUSED_ADAM",)),
                "environment": m.env(TORCH_CUDA_ARCH_LIST="8.0"),
                "nvidia_kernel": m.kernel(),
            },
            ["ok"],
            id="the list keeps nvcc 13.0 from the architectures that it refuses",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("12.4")),
                "deep_speed_install": m.DEEPSPEED,
                "gpus": m.gpus("5090"),
                "run_needs": m.OFFLOAD,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
            },
            ["skip"],
            id="CPU offload is built without nvcc",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected


def test_a_toolkit_is_not_the_fix_of_a_variable() -> None:
    facts: dict[str, Any] = {
        "torch_build": m.torch(),
        "cuda_toolkits": m.toolkits(m.toolkit("12.8")),
        "deep_speed_install": m.DEEPSPEED,
        "gpus": m.gpus("A100"),
        "run_needs": m.ADAM,
        "nvidia_kernel": m.kernel(),
    }
    for value in ("9.0", "3.5"):
        (found,) = judge(CHECK, **facts, environment=m.env(TORCH_CUDA_ARCH_LIST=value)).bad
        assert found.fixes == ("unset-variables",), value
    facts["cuda_toolkits"] = m.toolkits(m.toolkit("11.7"))
    (found,) = judge(CHECK, **facts | {"gpus": m.gpus("4090")}, environment=m.NO_ENV).bad
    assert found.fixes[0] == "install-cuda-toolkit"
