from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Gpus, NvidiaSmi
from dsdoctor.testing import judge
from dsdoctor_checks.driver import nvidia_smi_broken
from tests.checks import machines as m

CHECK = nvidia_smi_broken.nvidia_smi_answers


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            {
                "nvidia_smi": m.smi(),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
                "torch_live": m.live(),
            },
            ["ok"],
            id="nvidia-smi, the driver and torch all work",
        ),
        pytest.param(
            {"nvidia_smi": NvidiaSmi(), "nvidia_kernel": m.NO_GPU},
            ["ok"],
            id="a machine without a GPU and without nvidia-smi",
        ),
        pytest.param(
            {"nvidia_smi": m.smi(returncode=9, error="no driver"), "nvidia_kernel": m.NO_GPU},
            ["warn"],
            id="nvidia-smi is installed on a machine without a GPU",
        ),
        pytest.param(
            {"nvidia_smi": m.smi(returncode=9, error="no driver"), "nvidia_kernel": m.kernel(None)},
            ["fail"],
            id="nvidia-smi finds no driver for a GPU on the bus",
        ),
        pytest.param(
            {
                "nvidia_smi": m.smi(error="its output is not text"),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["warn"],
            id="nvidia-smi prints garbage, but NVML lists the GPU",
        ),
        pytest.param(
            {
                "nvidia_smi": m.smi(returncode=6, error="No devices were found"),
                "nvidia_kernel": m.kernel(),
                "gpus": Gpus(count=0),
            },
            ["ok"],
            id="nvidia-smi and NVML agree that there is no GPU",
        ),
        pytest.param(
            {
                "nvidia_smi": m.smi(returncode=6, error="No devices were found"),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["warn"],
            id="nvidia-smi finds no GPU, and NVML does",
        ),
        pytest.param(
            {
                "nvidia_smi": m.smi(returncode=None, timed_out=True, error="x"),
                "nvidia_kernel": m.kernel(),
            },
            ["ok"],
            id="nvidia-smi hangs, which another check reports",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
