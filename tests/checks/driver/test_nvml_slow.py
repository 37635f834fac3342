from __future__ import annotations

import pytest

from dsdoctor.api import Gpus, Nvml
from dsdoctor_checks.driver import nvml_slow
from tests.checks import machines as m

CHECK = nvml_slow.driver_answers_at_once.function
COLD = m.gpus("H100", "H100", persistence_mode=False)


@pytest.mark.parametrize(
    ("nvml", "gpus", "expected"),
    [
        (Nvml(), COLD, []),
        (Nvml(slow_seconds=14.2), COLD, ["warn"]),
        # slow for another reason: the driver stays loaded
        (Nvml(slow_seconds=14.2), m.gpus("H100", persistence_mode=True), []),
        # WSL and vGPU do not tell
        (Nvml(slow_seconds=14.2), m.gpus("H100"), []),
        (Nvml(slow_seconds=14.2), Gpus(count=0), []),
    ],
)
def test_verdict(nvml: Nvml, gpus: Gpus, expected: list[str]) -> None:
    assert m.words(CHECK(nvml, gpus)) == expected
