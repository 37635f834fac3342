from __future__ import annotations

import pytest

from dsdoctor_checks.cuda import nvcc_unusable
from tests.checks import machines as m

CHECK = nvcc_unusable.nvcc_tells_version.function


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
        ((m.torch(), m.toolkits(), m.DEEPSPEED, m.ANY, m.NO_ENV, m.kernel(), m.gpus("A100")), []),
        (
            (
                m.torch(),
                m.toolkits(m.toolkit(version=None, error="its output is not text")),
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
                m.toolkits(m.toolkit(version=None, error="its output is not text")),
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
                m.toolkits(m.toolkit(version=None, error="its output is not text")),
                m.DEEPSPEED,
                m.OFFLOAD,
                m.NO_ENV,
                m.kernel(),
                m.gpus("A100"),
            ),
            ["skip"],
        ),
        (
            (
                m.torch(),
                m.toolkits(m.toolkit(), m.toolkit(version=None, error="exit 126")),
                m.DEEPSPEED,
                m.ANY,
                m.NO_ENV,
                m.kernel(),
                m.gpus("A100"),
            ),
            [],
        ),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
