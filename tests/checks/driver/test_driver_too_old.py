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
        (
            {
                "torch_build": m.torch(),
                "nvidia_kernel": m.kernel("535.104.05"),
                "nvml": m.nvml("535.104.05"),
                "lib_cuda": m.libcuda("535.104.05"),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
        ),
        (
            {
                "torch_build": m.torch("2.11.0", "13.0"),
                "nvidia_kernel": m.kernel("535.104.05"),
                "nvml": m.nvml("535.104.05"),
                "lib_cuda": m.libcuda("535.104.05"),
                "gpus": m.gpus("A100"),
            },
            ["fail"],
        ),
        (
            {
                "torch_build": m.torch("2.11.0", "13.0"),
                "nvidia_kernel": m.kernel("535.104.05"),
                "nvml": m.nvml("535.104.05"),
                "lib_cuda": m.libcuda("580.65.06", compat=True),
                "gpus": m.gpus("A100"),
            },
            ["ok"],
        ),
        (
            {
                "torch_build": m.torch("2.11.0", "13.0"),
                "nvidia_kernel": m.kernel("535.104.05"),
                "nvml": m.nvml("535.104.05"),
                "lib_cuda": m.libcuda("580.65.06", compat=True),
                "gpus": m.gpus("4090"),
            },
            ["fail"],
        ),
        (
            {
                "torch_build": m.torch("2.11.0", "13.0"),
                "nvidia_kernel": m.kernel("535.104.05"),
                "nvml": m.nvml("535.104.05"),
                "lib_cuda": m.libcuda("580.65.06", compat=True),
                "gpus": m.gpus("4090"),
                "torch_live": m.live(),
            },
            ["ok"],
        ),
        (
            {
                "torch_build": m.torch("2.11.0", "13.0"),
                "nvidia_kernel": m.kernel("580.65.06"),
                "nvml": m.nvml("580.65.06"),
                "lib_cuda": m.libcuda("580.65.06", compat=True),
                "gpus": m.gpus("4090"),
            },
            ["ok"],
        ),
        (
            {
                "torch_build": m.torch("2.11.0", "13.0"),
                "nvidia_kernel": m.kernel("580.95.05"),
                "nvml": m.nvml("580.95.05"),
                "lib_cuda": m.libcuda("580.95.05"),
                "gpus": m.gpus("A100"),
                "torch_live": m.live(35),
            },
            ["fail"],
        ),
        (
            {
                "torch_build": m.torch("2.13.0+cpu", None),
                "nvidia_kernel": m.kernel("535.104.05"),
                "nvml": m.nvml("535.104.05"),
                "lib_cuda": m.libcuda("535.104.05"),
                "gpus": m.gpus("A100"),
            },
            ["skip"],
        ),
        ({"torch_build": m.torch(), "nvidia_kernel": m.NO_GPU}, ["skip"]),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
