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
        (Nvml(), COLD, ["ok"]),
        (Nvml(slow_seconds=14.2), COLD, ["warn"]),
        # slow for another reason: the driver stays loaded
        (Nvml(slow_seconds=14.2), m.gpus("H100", persistence_mode=True), ["ok"]),
        # WSL and vGPU do not tell
        (Nvml(slow_seconds=14.2), m.gpus("H100"), ["ok"]),
        (Nvml(slow_seconds=14.2), Gpus(count=0), ["ok"]),
    ],
)
def test_verdict(nvml: Nvml, gpus: Gpus, expected: list[str]) -> None:
    assert judge(CHECK, nvml=nvml, gpus=gpus).statuses == expected
