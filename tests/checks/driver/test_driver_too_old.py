from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.testing import judge
from dsdoctor_checks.driver import driver_too_old
from tests.checks import machines as m

CHECK = driver_too_old.driver_supports_torch


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            {
                "torch_build": m.torch(),
                "nvidia_kernel": m.kernel("535.104.05"),
                "nvml": m.nvml("535.104.05"),
                "lib_cuda": m.libcuda("535.104.05"),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
            id="driver 535 is new enough for torch cu128 on an A100",
        ),
        pytest.param(
            {
                "torch_build": m.torch("1.6.0", "10.2"),
                "nvidia_kernel": m.kernel("418.67"),
                "nvml": m.nvml("418.67"),
                "lib_cuda": m.libcuda("418.67"),
                "gpus": m.gpus("V100"),
            },
            ["fail"],
            id="before CUDA 11 each version has a minimum of its own: 418 is too old for 10.2",
        ),
        pytest.param(
            {
                "torch_build": m.torch("1.6.0", "10.1"),
                "nvidia_kernel": m.kernel("418.67"),
                "nvml": m.nvml("418.67"),
                "lib_cuda": m.libcuda("418.67"),
                "gpus": m.gpus("V100"),
            },
            ["ok"],
            id="driver 418 is new enough for torch cu101 on a V100",
        ),
        pytest.param(
            {
                "torch_build": m.torch("2.11.0", "13.0"),
                "nvidia_kernel": m.kernel("535.104.05"),
                "nvml": m.nvml("535.104.05"),
                "lib_cuda": m.libcuda("535.104.05"),
                "gpus": m.gpus("A100"),
            },
            ["fail"],
            id="driver 535 is too old for torch cu130 on an A100",
        ),
        pytest.param(
            {
                "torch_build": m.torch("2.11.0", "13.0"),
                "nvidia_kernel": m.kernel("535.104.05"),
                "nvml": m.nvml("535.104.05"),
                "lib_cuda": m.libcuda("580.65.06", compat=True),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
            id="the compat library lets an A100 with driver 535 run torch cu130",
        ),
        pytest.param(
            {
                "torch_build": m.torch("2.11.0", "13.0"),
                "nvidia_kernel": m.kernel("535.104.05"),
                "nvml": m.nvml("535.104.05"),
                "lib_cuda": m.libcuda("580.65.06", compat=True),
                "gpus": m.gpus("4090"),
            },
            ["fail"],
            id="the compat library does not work on a GeForce with driver 535",
        ),
        pytest.param(
            {
                "torch_build": m.torch("2.11.0", "13.0"),
                "nvidia_kernel": m.kernel("535.104.05"),
                "nvml": m.nvml("535.104.05"),
                "lib_cuda": m.libcuda("580.65.06", compat=True),
                "gpus": m.gpus("4090"),
                "torch_live": m.live(),
            },
            ["ok"],
            id="torch cu130 works on a GeForce with driver 535, whatever the rules say",
        ),
        pytest.param(
            {
                "torch_build": m.torch("2.11.0", "13.0"),
                "nvidia_kernel": m.kernel("580.65.06"),
                "nvml": m.nvml("580.65.06"),
                "lib_cuda": m.libcuda("580.65.06", compat=True),
                "gpus": m.gpus("4090"),
            },
            ["ok"],
            id="a GeForce whose own driver is as new as the compat library",
        ),
        pytest.param(
            {
                "torch_build": m.torch("2.11.0", "13.0"),
                "nvidia_kernel": m.kernel("580.95.05"),
                "nvml": m.nvml("580.95.05"),
                "lib_cuda": m.libcuda("580.95.05"),
                "gpus": m.gpus("A100"),
                "torch_live": m.live(35),
            },
            ["fail"],
            id="the driver looks new enough, but CUDA itself calls it too old",
        ),
        pytest.param(
            {
                "torch_build": m.torch("2.13.0+cpu", None),
                "nvidia_kernel": m.kernel("535.104.05"),
                "nvml": m.nvml("535.104.05"),
                "lib_cuda": m.libcuda("535.104.05"),
                "gpus": m.gpus("A100"),
            },
            ["skip"],
            id="a torch build for CPUs does not need a driver",
        ),
        pytest.param(
            {"torch_build": m.torch(), "nvidia_kernel": m.NO_GPU},
            ["skip"],
            id="a machine without an NVIDIA GPU",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected


ERROR_35: dict[str, Any] = {
    "torch_build": m.torch("2.6.0+cu124", "12.4"),
    "nvidia_kernel": m.kernel("550.100"),
    "nvml": m.nvml("550.100"),
    "gpus": m.gpus("A100"),
    "torch_live": m.live(35),
}


def test_error_35_of_a_driver_that_is_new_enough_is_not_blamed_on_the_driver() -> None:
    judged = judge(CHECK, lib_cuda=m.libcuda("550.100"), **ERROR_35)
    assert judged.statuses == ["fail"]
    assert "driver 550.100 is new enough (525.60.13 or newer" in judged.worst.message
    assert "ldconfig" in (judged.worst.hint or "")
    assert judge(CHECK, lib_cuda=m.libcuda("440.59"), **ERROR_35).statuses == ["skip"]
