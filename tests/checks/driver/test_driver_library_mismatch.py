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
        pytest.param(
            {
                "nvidia_kernel": m.kernel("535.104.05"),
                "nvml": m.nvml("535.104.05"),
                "lib_cuda": m.libcuda("535.104.05"),
                "torch_live": m.live(),
            },
            ["ok"],
            id="module, NVML and libcuda are all 535.104.05, and torch works",
        ),
        pytest.param(
            {
                "nvidia_kernel": m.kernel("535.104.05"),
                "nvml": m.nvml("535.104.05"),
                "lib_cuda": m.libcuda("535.104.05"),
            },
            ["ok"],
            id="module, NVML and libcuda agree, and torch was not tried",
        ),
        pytest.param(
            {"nvidia_kernel": m.kernel("535.104.05"), "lib_cuda": m.libcuda("550.54.14")},
            ["fail"],
            id="libcuda 550 was installed while the 535 module stays loaded",
        ),
        pytest.param(
            {"nvidia_kernel": m.kernel("535.104.05"), "nvml": m.nvml("550.54.14")},
            ["fail"],
            id="NVML 550 was installed while the 535 module stays loaded",
        ),
        pytest.param(
            {
                "nvidia_kernel": m.kernel("535.104.05"),
                "nvml": Nvml(error=NvmlError(code=18, name="X", message="x", call="nvmlInit")),
            },
            ["fail"],
            id="NVML itself reports that it does not match the kernel module",
        ),
        pytest.param(
            {
                "nvidia_kernel": m.kernel("535.104.05"),
                "nvml": m.nvml("535.104.05"),
                "lib_cuda": m.libcuda("580.65.06", compat=True),
            },
            ["ok"],
            id="a newer libcuda from the compat folder is meant to differ",
        ),
        pytest.param(
            {
                "nvidia_kernel": m.kernel("535.104.05"),
                "lib_cuda": m.libcuda("550.54.14"),
                "torch_live": m.live(),
            },
            ["ok"],
            id="libcuda differs on disk, but torch works all the same",
        ),
        pytest.param(
            {"nvidia_kernel": m.kernel(), "nvml": m.nvml(), "torch_live": m.live(803)},
            ["fail"],
            id="versions agree on disk, but CUDA reports a driver mismatch",
        ),
        pytest.param({}, ["ok"], id="a machine of which nothing is known"),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected


@pytest.mark.parametrize(("library", "word"), [("440.59", "ldconfig"), ("580.95.05", "reboot")])
def test_a_reboot_is_no_way_out_of_a_library_that_is_older(library: str, word: str) -> None:
    found = judge(CHECK, nvidia_kernel=m.kernel("550.100"), lib_cuda=m.libcuda(library))
    assert found.statuses == ["fail"]
    assert word in (found.worst.hint or "")
