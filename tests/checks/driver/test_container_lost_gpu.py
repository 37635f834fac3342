from __future__ import annotations

import pytest

from dsdoctor.api import Nvml, NvmlError
from dsdoctor_checks.driver import container_lost_gpu
from tests.checks import machines as m

CHECK = container_lost_gpu.container_keeps_gpu.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((m.DOCKER, m.nvml(), m.smi(), m.live()), []),
        (
            (
                m.DOCKER,
                Nvml(error=NvmlError(code=999, name="X", message="x", call="nvmlInit")),
                m.ABSENT,
                m.ABSENT,
            ),
            ["fail"],
        ),
        (
            (
                m.DOCKER,
                m.ABSENT,
                m.smi(returncode=255, error="Failed to initialize NVML: Unknown Error"),
                m.ABSENT,
            ),
            ["fail"],
        ),
        (
            (
                m.LINUX,
                Nvml(error=NvmlError(code=999, name="X", message="x", call="nvmlInit")),
                m.ABSENT,
                m.ABSENT,
            ),
            [],
        ),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
