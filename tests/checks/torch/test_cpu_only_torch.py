from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.testing import judge
from dsdoctor_checks.torch import cpu_only_torch
from tests.checks import machines as m

CHECK = cpu_only_torch.torch_has_cuda


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            {
                "torch_build": m.torch(),
                "gpus": m.gpus("A100"),
                "nvidia_kernel": m.kernel(),
                "nvml": m.nvml(),
                "environment": m.NO_ENV,
            },
            ["ok"],
        ),
        (
            {
                "torch_build": m.torch("2.13.0+cpu", None),
                "gpus": m.gpus("A100"),
                "nvidia_kernel": m.kernel(),
                "nvml": m.nvml(),
                "environment": m.NO_ENV,
            },
            ["fail"],
        ),
        (
            {
                "torch_build": m.torch("2.13.0+cpu", None),
                "nvidia_kernel": m.NO_GPU,
                "environment": m.NO_ENV,
            },
            ["skip"],
        ),
        (
            {
                "torch_build": m.torch("2.13.0+cpu", None),
                "nvidia_kernel": m.NO_GPU,
                "environment": m.NO_ENV,
                "run_needs": m.WANTS,
            },
            ["fail"],
        ),
        (
            {
                "torch_build": m.torch("2.13.0+cpu", None),
                "gpus": m.gpus("A100"),
                "nvidia_kernel": m.kernel(),
                "nvml": m.nvml(),
                "environment": m.env(CUDA_VISIBLE_DEVICES=""),
            },
            ["skip"],
        ),
        (
            {
                "torch_build": m.torch("2.9.1", None, hip="6.4"),
                "gpus": m.gpus("A100"),
                "nvidia_kernel": m.kernel(),
                "nvml": m.nvml(),
                "environment": m.NO_ENV,
            },
            ["ok"],
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
