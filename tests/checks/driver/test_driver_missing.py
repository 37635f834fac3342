from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import NvidiaKernel
from dsdoctor.testing import judge
from dsdoctor_checks.driver import driver_missing
from tests.checks import machines as m

CHECK = driver_missing.gpu_has_driver


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"nvidia_kernel": m.NO_GPU}, ["skip"]),
        ({"nvidia_kernel": m.kernel(), "nvml": m.nvml()}, ["ok"]),
        ({"nvidia_kernel": m.kernel(None, None)}, ["fail"]),
        ({"nvidia_kernel": m.kernel(None, "nouveau")}, ["fail"]),
        ({"nvidia_kernel": m.kernel(None, "vfio-pci")}, ["skip"]),
        ({"nvidia_kernel": m.kernel(None, None), "nvml": m.nvml()}, ["ok"]),
        ({"nvidia_kernel": NvidiaKernel(dxg=True), "nvml": m.nvml()}, ["ok"]),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
