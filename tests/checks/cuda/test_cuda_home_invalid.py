from __future__ import annotations

import pytest

from dsdoctor_checks.cuda import cuda_home_invalid
from tests.checks import machines as m

CHECK = cuda_home_invalid.cuda_home_is_toolkit.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            (
                m.torch(),
                m.toolkits(m.toolkit()),
                m.DEEPSPEED,
                m.ANY,
                m.NO_ENV,
                m.kernel(),
                m.gpus("A100"),
            ),
            [],
        ),
        (
            (
                m.torch(),
                m.toolkits(cuda_home_missing="/opt/gone"),
                m.DEEPSPEED,
                m.ANY,
                m.NO_ENV,
                m.kernel(),
                m.gpus("A100"),
            ),
            ["warn"],
        ),
        (
            (
                m.torch(),
                m.toolkits(cuda_home_missing="/opt/gone"),
                m.DEEPSPEED,
                m.ADAM,
                m.NO_ENV,
                m.kernel(),
                m.gpus("A100"),
            ),
            ["fail"],
        ),
        (
            (
                m.torch(),
                m.toolkits(m.toolkit(nvcc=None, version=None), how="CUDA_HOME"),
                m.DEEPSPEED,
                m.ADAM,
                m.NO_ENV,
                m.kernel(),
                m.gpus("A100"),
            ),
            ["fail"],
        ),
        (
            (
                m.torch("2.13.0+cpu", None),
                m.toolkits(cuda_home_missing="/opt/gone"),
                m.DEEPSPEED,
                m.ANY,
                m.NO_ENV,
                m.kernel(),
                m.gpus("A100"),
            ),
            ["skip"],
        ),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
