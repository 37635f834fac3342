from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import DeepSpeedInstall, RunNeeds, TorchBuild
from dsdoctor.testing import judge
from dsdoctor_checks.cuda import cuda_toolkit_mismatch
from tests.checks import machines as m

CHECK = cuda_toolkit_mismatch.toolkit_matches_torch


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
                "cuda_toolkits": m.toolkits(m.toolkit("12.4")),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": RunNeeds(build_ops=("FUSED_ADAM",)),
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
        ),
        (
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("12.7")),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": RunNeeds(build_ops=("FUSED_ADAM",)),
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["fail"],
        ),
        (
            {
                "torch_build": m.torch("2.11.0", "13.0"),
                "cuda_toolkits": m.toolkits(m.toolkit("13.2")),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": RunNeeds(build_ops=("FUSED_ADAM",)),
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["fail"],
        ),
        (
            {
                "torch_build": m.torch("2.11.0", "13.0"),
                "cuda_toolkits": m.toolkits(m.toolkit("13.0")),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": RunNeeds(build_ops=("FUSED_ADAM",)),
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
        ),
        (
            {
                "torch_build": m.torch("2.11.0", "13.0"),
                "cuda_toolkits": m.toolkits(m.toolkit("13.2")),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": RunNeeds(build_ops=("FUSED_ADAM",)),
                "environment": m.env(DS_SKIP_CUDA_CHECK="1"),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
        ),
        (
            {
                "torch_build": m.torch("2.11.0", "13.0"),
                "cuda_toolkits": m.toolkits(m.toolkit("13.2")),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": RunNeeds(build_ops=("FUSED_ADAM",)),
                "environment": m.env(DS_SKIP_CUDA_CHECK="true"),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["fail"],
        ),
        (
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("12.9")),
                "deep_speed_install": DeepSpeedInstall(version="0.17.1"),
                "run_needs": RunNeeds(build_ops=("FUSED_ADAM",)),
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["fail"],
        ),
        (
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("11.8")),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": RunNeeds(build_ops=("FUSED_ADAM",)),
                "environment": m.NO_ENV,
                "nvidia_kernel": m.NO_GPU,
            },
            ["fail"],
        ),
        (
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("11.8")),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": m.ADAM,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["warn"],
        ),
        (
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("11.8", trial_ok=True)),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": m.ADAM,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["warn"],
        ),
        (
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("11.8", trial_ok=False)),
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
                "cuda_toolkits": m.toolkits(m.toolkit("12.4")),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": m.ADAM,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
        ),
        (
            {
                "torch_build": m.torch("2.11.0", "13.0"),
                "cuda_toolkits": m.toolkits(m.toolkit("13.2")),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": m.ADAM,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
        ),
        (
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("12.7")),
                "deep_speed_install": DeepSpeedInstall(version="0.12.2"),
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
                "cuda_toolkits": m.toolkits(m.toolkit("11.8")),
                "deep_speed_install": DeepSpeedInstall(
                    version="0.19.8",
                    installed_ops={"fused_adam": True},
                    built_for_torch="2.9",
                    built_for_cuda="12.8",
                ),
                "run_needs": m.ADAM,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
        ),
        (
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("11.8")),
                "deep_speed_install": DeepSpeedInstall(
                    version="0.19.8",
                    installed_ops={"fused_adam": True},
                    built_for_torch="2.5",
                    built_for_cuda="12.4",
                ),
                "run_needs": m.ADAM,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["warn"],
        ),
        (
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("11.8")),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": m.OFFLOAD,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
        ),
        (
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("11.8")),
                "deep_speed_install": DeepSpeedInstall(version="0.19.7"),
                "run_needs": m.OFFLOAD,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["warn"],
        ),
        (
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("11.8")),
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
                "cuda_toolkits": m.toolkits(m.toolkit("12.4")),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
        ),
        (
            {
                "torch_build": m.torch("2.13.0+cpu", None),
                "cuda_toolkits": m.toolkits(m.toolkit()),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["skip"],
        ),
        (
            {
                "torch_build": m.torch("2.9.1", None, hip="6.4"),
                "cuda_toolkits": m.toolkits(m.toolkit()),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["skip"],
        ),
        (
            {
                "torch_build": TorchBuild(),
                "cuda_toolkits": m.toolkits(m.toolkit()),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["skip"],
        ),
        (
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["skip"],
        ),
        (
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("11.8")),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.NO_GPU,
            },
            ["skip"],
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
