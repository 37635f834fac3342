from __future__ import annotations

import pytest

from dsdoctor_checks.cuda import skip_cuda_check_set
from tests.checks import machines as m

CHECK = skip_cuda_check_set.cuda_check_is_on.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((m.NO_ENV, m.torch(), m.toolkits(m.toolkit()), m.DEEPSPEED), []),
        (
            (m.env(DS_SKIP_CUDA_CHECK="1"), m.torch(), m.toolkits(m.toolkit("11.8")), m.DEEPSPEED),
            ["warn"],
        ),
        (
            (m.env(DS_SKIP_CUDA_CHECK="1"), m.torch(), m.toolkits(m.toolkit("12.8")), m.DEEPSPEED),
            ["ok"],
        ),
        (
            (
                m.env(DS_SKIP_CUDA_CHECK="true"),
                m.torch(),
                m.toolkits(m.toolkit("11.8")),
                m.DEEPSPEED,
            ),
            ["warn"],
        ),
        (
            (m.env(DS_SKIP_CUDA_CHECK="0"), m.torch(), m.toolkits(m.toolkit("11.8")), m.DEEPSPEED),
            [],
        ),
        ((m.env(DS_SKIP_CUDA_CHECK="1"), m.torch(), m.toolkits(), m.DEEPSPEED), ["skip"]),
        (
            (
                m.env(DS_SKIP_CUDA_CHECK="1"),
                m.torch("2.13.0+cpu", None),
                m.toolkits(m.toolkit("12.8")),
                m.DEEPSPEED,
            ),
            ["skip"],
        ),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
