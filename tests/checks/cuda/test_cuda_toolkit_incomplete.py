from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import CudaToolkits, DeepSpeedInstall, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.cuda import cuda_toolkit_incomplete
from tests.checks import machines as m

CHECK = cuda_toolkit_incomplete.toolkit_is_complete


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
                "cuda_toolkits": m.toolkits(m.toolkit("12.8", missing_headers=("cusparse.h",))),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": m.ADAM,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["fail"],
            id="cusparse.h is missing, and the optimizer must be built",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("12.8", has_cudart=False)),
                "deep_speed_install": m.DEEPSPEED,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["warn"],
            id="libcudart is missing, and no config is given",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("12.8", has_cudart=False, trial_ok=True)),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": m.ADAM,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
            id="libcudart is not where it should be, but a trial build works",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "cuda_toolkits": m.toolkits(m.toolkit("12.8", has_cudart=False)),
                "deep_speed_install": m.DEEPSPEED,
                "run_needs": m.OFFLOAD,
                "environment": m.NO_ENV,
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["skip"],
            id="libcudart is missing, but CPU offload does not need it",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected


@pytest.mark.parametrize(
    ("release", "run", "expected"),
    [
        pytest.param("0.14.2", m.OFFLOAD, "fail", id="the CPU optimizer of an old DeepSpeed"),
        pytest.param("0.14.4", m.OFFLOAD, "ok", id="that of a newer one"),
        pytest.param("0.14.2", m.ADAM, "ok", id="the optimizer of the GPU"),
        pytest.param("0.19.8", RunNeeds(build_ops=("DS_BUILD_TRANSFORMER",)), "fail",
                     id="the transformer kernels"),
    ],
)  # fmt: skip
def test_the_header_of_the_profiler(release: str, run: RunNeeds, expected: str) -> None:
    found = judge(
        CHECK,
        torch_build=m.torch(),
        cuda_toolkits=m.toolkits(m.toolkit("12.8", missing_headers=("cuda_profiler_api.h",))),
        deep_speed_install=DeepSpeedInstall(version=release),
        run_needs=run,
        environment=m.NO_ENV,
        nvidia_kernel=m.kernel(),
        gpus=m.gpus("A100"),
    )
    assert found.status == expected


@pytest.mark.parametrize(
    ("release", "toolkit", "by_default", "expected"),
    [
        pytest.param("0.14.2", True, False, "ok", id="torch adds the folder for a .cu file"),
        pytest.param("0.14.4", True, False, "fail", id="nobody says where the library is"),
        pytest.param("0.14.4", True, True, "ok", id="the linker looks there by itself"),
        pytest.param("0.14.5", True, False, "ok", id="DeepSpeed says where it is"),
        pytest.param("0.17.2", False, False, "fail", id="a toolkit without it"),
        pytest.param("0.17.2", False, True, "ok", id="the system has it"),
        pytest.param("0.19.8", False, False, "skip", id="a release that does not link with it"),
    ],
)
def test_the_library_of_random_numbers(
    release: str, toolkit: bool, by_default: bool, expected: str
) -> None:
    found = judge(
        CHECK,
        torch_build=m.torch(),
        cuda_toolkits=CudaToolkits(
            chosen=0, found=(m.toolkit("12.8", has_curand=toolkit),), curand_by_default=by_default
        ),
        deep_speed_install=DeepSpeedInstall(version=release),
        run_needs=m.OFFLOAD,
        environment=m.NO_ENV,
        nvidia_kernel=m.kernel(),
        gpus=m.gpus("A100"),
    )
    assert found.status == expected
