from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor.api import NvidiaKernel
from dsdoctor.testing import assert_fail, judge
from dsdoctor_checks.driver import driver_missing
from tests.checks import machines as m

CHECK = driver_missing.gpu_has_driver


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param({"nvidia_kernel": m.NO_GPU}, ["skip"], id="a machine without an NVIDIA GPU"),
        pytest.param(
            {"nvidia_kernel": m.kernel(), "nvml": m.nvml()},
            ["ok"],
            id="the driver is loaded and NVML answers",
        ),
        pytest.param(
            {"nvidia_kernel": m.kernel(None, None)},
            ["fail"],
            id="a GPU on the bus that no driver is bound to",
        ),
        pytest.param(
            {"nvidia_kernel": m.kernel(None, "nouveau")}, ["fail"], id="nouveau is bound to the GPU"
        ),
        pytest.param(
            {"nvidia_kernel": m.kernel(None, "vfio-pci")},
            ["skip"],
            id="the GPU is passed through to a virtual machine",
        ),
        pytest.param(
            {"nvidia_kernel": m.kernel(None, None), "nvml": m.nvml()},
            ["ok"],
            id="no module is visible, but NVML answers, as in some sandboxes",
        ),
        pytest.param(
            {"nvidia_kernel": NvidiaKernel(dxg=True), "nvml": m.nvml()},
            ["ok"],
            id="WSL has no module of its own and reaches the driver through dxg",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected


@pytest.mark.parametrize("on", [True, False, None])
def test_secure_boot_is_named_where_it_is_on(on: bool | None) -> None:
    kernel = msgspec.structs.replace(m.kernel(None, None), secure_boot=on)
    hint = assert_fail(judge(CHECK, nvidia_kernel=kernel)).hint
    assert ("Secure Boot is on" in hint) is (on is True)
