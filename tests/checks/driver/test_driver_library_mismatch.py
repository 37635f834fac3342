from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Nvml, NvmlError
from dsdoctor.testing import judge
from dsdoctor_checks.driver import driver_library_mismatch
from tests.checks import machines as m

CHECK = driver_library_mismatch.module_matches_library


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            {
                "nvidia_kernel": m.kernel("535.104.05"),
                "nvml": m.nvml("535.104.05"),
                "lib_cuda": m.libcuda("535.104.05"),
                "torch_live": m.live(),
            },
            ["ok"],
        ),
        (
            {
                "nvidia_kernel": m.kernel("535.104.05"),
                "nvml": m.nvml("535.104.05"),
                "lib_cuda": m.libcuda("535.104.05"),
            },
            ["ok"],
        ),
        ({"nvidia_kernel": m.kernel("535.104.05"), "lib_cuda": m.libcuda("550.54.14")}, ["fail"]),
        ({"nvidia_kernel": m.kernel("535.104.05"), "nvml": m.nvml("550.54.14")}, ["fail"]),
        (
            {
                "nvidia_kernel": m.kernel("535.104.05"),
                "nvml": Nvml(error=NvmlError(code=18, name="X", message="x", call="nvmlInit")),
            },
            ["fail"],
        ),
        (
            {
                "nvidia_kernel": m.kernel("535.104.05"),
                "nvml": m.nvml("535.104.05"),
                "lib_cuda": m.libcuda("580.65.06", compat=True),
            },
            ["ok"],
        ),
        (
            {
                "nvidia_kernel": m.kernel("535.104.05"),
                "lib_cuda": m.libcuda("550.54.14"),
                "torch_live": m.live(),
            },
            ["ok"],
        ),
        ({"nvidia_kernel": m.kernel(), "nvml": m.nvml(), "torch_live": m.live(803)}, ["fail"]),
        ({}, ["ok"]),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
