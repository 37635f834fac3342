from __future__ import annotations

import pytest

from dsdoctor.api import Gpus, Nvml
from dsdoctor.testing import judge
from dsdoctor_checks.driver import nvml_slow
from tests.checks import machines as m

CHECK = nvml_slow.driver_answers_at_once
COLD = m.gpus("H100", "H100", persistence_mode=False)


@pytest.mark.parametrize(
    ("nvml", "gpus", "expected"),
    [
        pytest.param(
            Nvml(), COLD, ["ok"], id="persistence mode is off, but the driver answers at once"
        ),
        pytest.param(
            Nvml(slow_seconds=14.2),
            COLD,
            ["warn"],
            id="the driver needs 14 s without persistence mode",
        ),
        # slow for another reason: the driver stays loaded
        pytest.param(
            Nvml(slow_seconds=14.2),
            m.gpus("H100", persistence_mode=True),
            ["ok"],
            id="the driver is slow although persistence mode is on",
        ),
        # WSL and vGPU do not tell
        pytest.param(
            Nvml(slow_seconds=14.2),
            m.gpus("H100"),
            ["ok"],
            id="the driver is slow and persistence mode is unknown",
        ),
        pytest.param(
            Nvml(slow_seconds=14.2),
            Gpus(count=0),
            ["ok"],
            id="the driver is slow on a machine without a GPU",
        ),
    ],
)
def test_verdict(nvml: Nvml, gpus: Gpus, expected: list[str]) -> None:
    assert judge(CHECK, nvml=nvml, gpus=gpus).statuses == expected
