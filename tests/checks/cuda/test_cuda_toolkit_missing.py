from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import DeepSpeedInstall, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.cuda import cuda_toolkit_missing
from tests.checks import machines as m

CHECK = cuda_toolkit_missing.toolkit_is_there


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
                "cuda_toolkits": m.toolkits(),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": m.ADAM,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["fail"],
            id="no toolkit, and the optimizer must be built",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": RunNeeds(build_ops=("FUSED_ADAM",)),
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["fail"],
            id="no toolkit, and DeepSpeed is asked to build it when installed",
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
            ["warn"],
            id="no toolkit and no config",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit(version=None, error="timed out after 10 s")),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": m.ADAM,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["fail"],
            id="nvcc does not answer, and the optimizer must be built",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(),
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
            id="no toolkit, but the optimizer is already built",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(),
                "deep_speed_install": DeepSpeedInstall(
                    version="0.19.8",
                    installed_ops={"fused_adam": True},
                    built_for_torch="2.9",
                    built_for_cuda="12.8",
                    built_for_accelerator="cpu",
                ),
                "run_needs": m.ADAM,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["fail"],
            id="no toolkit, and the optimizer was built where no GPU was visible",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": m.OFFLOAD,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
            id="no toolkit, but CPU offload is built without nvcc",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(),
                "deep_speed_install": DeepSpeedInstall(version="0.19.7"),
                "run_needs": m.OFFLOAD,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["fail"],
            id="no toolkit, and CPU offload is built with nvcc before 0.19.8",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": RunNeeds(
                    config={"optimizer": {"type": "AdamW", "params": {"torch_adam": True}}}
                ),
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
            id="no toolkit, but torch's own optimizer is chosen",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": RunNeeds(config={}),
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
            id="no toolkit, but the config needs no op",
        ),
        pytest.param(
            {
                "torch_build": m.torch("2.13.0+cpu", None),
                "cuda_toolkits": m.toolkits(),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["skip"],
            id="a torch build for CPUs does not use a toolkit",
        ),
        pytest.param(
            {
                "torch_build": m.torch("2.9.1", None, hip="6.4"),
                "cuda_toolkits": m.toolkits(),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["skip"],
            id="a torch build for ROCm does not use a toolkit",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.NO_GPU,
            },
            ["skip"],
            id="no toolkit on a machine without a GPU",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected


@pytest.mark.parametrize(("value", "said"), [("0", True), ("1", False)])
def test_ds_build_ops_does_not_disable_builds_at_first_use(value: str, said: bool) -> None:
    found = judge(
        CHECK,
        torch_build=m.torch(),
        cuda_toolkits=m.toolkits(),
        gpus=m.gpus("A100"),
        environment=m.env(DS_BUILD_OPS=value),
        run_needs=m.ADAM,
    )
    (finding,) = found.findings
    assert finding.status.value == "fail"
    assert finding.hint.endswith("does not disable builds at first use") is said


@pytest.mark.parametrize(
    ("cuda", "channel"),
    [
        pytest.param("12.8", "conda-forge", id="conda-forge has it"),
        pytest.param("11.8", "nvidia/label/cuda-11.8.0", id="older than conda-forge's first"),
    ],
)
def test_the_hint_names_a_channel_that_has_the_toolkit(cuda: str, channel: str) -> None:
    found = judge(
        CHECK, torch_build=m.torch(cuda=cuda), cuda_toolkits=m.toolkits(),
        deep_speed_install=m.DEEPSPEED, run_needs=m.ADAM, environment=m.NO_ENV,
        nvidia_kernel=m.kernel(), gpus=m.gpus("A100"),
    )  # fmt: skip
    assert f"`conda install -c {channel} cuda-toolkit={cuda}`" in found.findings[0].hint


@pytest.mark.parametrize(
    ("uses", "expected"),
    [
        pytest.param(False, "skip", id="the script imports torch alone"),
        pytest.param(None, "warn", id="what the script imports is not known"),
    ],
)
def test_a_script_without_deepspeed_builds_no_ops(uses: bool | None, expected: str) -> None:
    found = judge(
        CHECK,
        torch_build=m.torch(),
        cuda_toolkits=m.toolkits(),
        deep_speed_install=m.DEEPSPEED,
        run_needs=RunNeeds(uses_deepspeed=uses),
        environment=m.NO_ENV,
        nvidia_kernel=m.kernel(),
        gpus=m.gpus("A100"),
    )
    assert found.status == expected
