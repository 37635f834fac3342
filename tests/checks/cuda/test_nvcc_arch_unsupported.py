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
        (
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
        ),
        (
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
        ),
        (
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("12.4")),
                "deep_speed_install": m.DEEPSPEED,
                "gpus": m.gpus("5090"),
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
            },
            ["warn"],
        ),
        (
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
        ),
        (
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
        ),
        (
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
        ),
        (
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
        ),
        (
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
        ),
        (
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
        ),
        (
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
        ),
        (
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
        ),
        (
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
        ),
        (
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
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
