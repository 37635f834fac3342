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
            id="toolkit 12.8 for torch cu128",
        ),
        pytest.param(
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
            id="DeepSpeed lets 12.4 build for cu128",
        ),
        pytest.param(
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
            id="DeepSpeed does not let 12.7 build for cu128",
        ),
        pytest.param(
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
            id="DeepSpeed does not let 13.2 build for cu130",
        ),
        pytest.param(
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
            id="toolkit 13.0 for torch cu130",
        ),
        pytest.param(
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
            id="13.2 builds for cu130 while the check of DeepSpeed is off",
        ),
        pytest.param(
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
            id="DeepSpeed does not read true as a way to turn its check off",
        ),
        pytest.param(
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
            id="an older DeepSpeed does not let 12.9 build for cu128",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("11.8")),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": RunNeeds(build_ops=("FUSED_ADAM",)),
                "environment": m.NO_ENV,
                "nvidia_kernel": m.NO_GPU,
            },
            ["fail"],
            id="11.8 cannot build for cu128, not even on a machine without a GPU",
        ),
        pytest.param(
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
            id="11.8 may fail for an op that is built at first use",
        ),
        pytest.param(
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
            id="a trial build with 11.8 works",
        ),
        pytest.param(
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
            id="a trial build with 11.8 fails",
        ),
        pytest.param(
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
            id="12.4 for an op that is built at first use",
        ),
        pytest.param(
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
            id="13.2 for cu130, for an op that is built at first use",
        ),
        pytest.param(
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
            id="DeepSpeed 0.12.2 checks the toolkit at first use too",
        ),
        pytest.param(
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
            id="the optimizer is already built for this torch",
        ),
        pytest.param(
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
            id="the optimizer was built for another torch and must be built again",
        ),
        pytest.param(
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
            id="CPU offload is built without nvcc",
        ),
        pytest.param(
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
            id="CPU offload is built with nvcc before 0.19.8",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("11.8")),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["warn"],
            id="11.8 and no config",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("12.4")),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
            id="12.4 and no config",
        ),
        pytest.param(
            {
                "torch_build": m.torch("2.13.0+cpu", None),
                "cuda_toolkits": m.toolkits(m.toolkit()),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["skip"],
            id="a torch build for CPUs does not use the toolkit",
        ),
        pytest.param(
            {
                "torch_build": m.torch("2.9.1", None, hip="6.4"),
                "cuda_toolkits": m.toolkits(m.toolkit()),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["skip"],
            id="a torch build for ROCm does not use the toolkit",
        ),
        pytest.param(
            {
                "torch_build": TorchBuild(),
                "cuda_toolkits": m.toolkits(m.toolkit()),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["skip"],
            id="torch is not installed",
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
            ["skip"],
            id="no toolkit is installed",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("11.8")),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.NO_GPU,
            },
            ["skip"],
            id="11.8 on a machine without a GPU",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
