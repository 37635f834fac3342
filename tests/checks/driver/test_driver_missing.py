from __future__ import annotations

import pytest

from dsdoctor.api import NvidiaKernel
from dsdoctor_checks.driver import driver_missing
from tests.checks import machines as m

CHECK = driver_missing.gpu_has_driver.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((m.NO_GPU, m.ABSENT), ["skip"]),
        ((m.kernel(), m.nvml()), []),
        ((m.kernel(None, None), m.ABSENT), ["fail"]),
        ((m.kernel(None, "nouveau"), m.ABSENT), ["fail"]),
        ((m.kernel(None, "vfio-pci"), m.ABSENT), ["skip"]),
        ((m.kernel(None, None), m.nvml()), []),
        ((NvidiaKernel(dxg=True), m.nvml()), []),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
