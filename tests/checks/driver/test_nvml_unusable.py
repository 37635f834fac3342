from __future__ import annotations

import pytest

from dsdoctor.api import Gpus, Nvml, NvmlError
from dsdoctor_checks.driver import nvml_unusable
from tests.checks import machines as m

CHECK = nvml_unusable.nvml_answers.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((m.nvml(), m.gpus("A100"), m.kernel(), m.LINUX, m.NO_ENV, m.ABSENT, m.ANY), []),
        ((m.TIMEOUT, m.ABSENT, m.kernel(), m.LINUX, m.NO_ENV, m.ABSENT, m.ANY), ["fail"]),
        ((m.ABSENT, m.ABSENT, m.kernel(), m.LINUX, m.NO_ENV, m.ABSENT, m.ANY), ["skip"]),
        (
            (
                Nvml(error=NvmlError(code=4, name="X", message="x", call="nvmlInit")),
                m.ABSENT,
                m.kernel(),
                m.LINUX,
                m.NO_ENV,
                m.ABSENT,
                m.ANY,
            ),
            ["fail"],
        ),
        (
            (
                Nvml(error=NvmlError(code=18, name="X", message="x", call="nvmlInit")),
                m.ABSENT,
                m.kernel(),
                m.LINUX,
                m.NO_ENV,
                m.ABSENT,
                m.ANY,
            ),
            [],
        ),
        (
            (
                Nvml(error=NvmlError(code=12, name="X", message="x", call="nvmlInit")),
                m.ABSENT,
                m.NO_GPU,
                m.LINUX,
                m.NO_ENV,
                m.ABSENT,
                m.ANY,
            ),
            ["skip"],
        ),
        (
            (
                Nvml(error=NvmlError(code=9, name="X", message="x", call="nvmlInit")),
                m.ABSENT,
                m.NO_GPU,
                m.LINUX,
                m.NO_ENV,
                m.ABSENT,
                m.ANY,
            ),
            ["skip"],
        ),
        (
            (
                Nvml(error=NvmlError(code=12, name="X", message="x", call="nvmlInit")),
                m.ABSENT,
                m.kernel(),
                m.DOCKER,
                m.NO_ENV,
                m.live(),
                m.ANY,
            ),
            ["warn"],
        ),
        (
            (
                Nvml(error=NvmlError(code=None, name="X", message="x", call="nvmlInit")),
                m.ABSENT,
                m.kernel(),
                m.LINUX,
                m.NO_ENV,
                m.ABSENT,
                m.ANY,
            ),
            ["skip"],
        ),
        (
            (
                m.nvml(),
                Gpus(count=8, stopped_at="gpu 3: nvmlDeviceGetName"),
                m.kernel(),
                m.LINUX,
                m.NO_ENV,
                m.ABSENT,
                m.ANY,
            ),
            ["fail"],
        ),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
