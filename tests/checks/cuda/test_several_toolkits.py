from __future__ import annotations

import pytest

from dsdoctor_checks.cuda import several_toolkits
from tests.checks import machines as m

CHECK = several_toolkits.best_toolkit_is_chosen.function


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
            ["ok"],
        ),
        (
            (
                m.torch(),
                m.toolkits(m.toolkit("12.8"), m.toolkit("11.8")),
                m.DEEPSPEED,
                m.ANY,
                m.NO_ENV,
                m.kernel(),
                m.gpus("A100"),
            ),
            ["ok"],
        ),
        (
            (
                m.torch(),
                m.toolkits(m.toolkit("11.8"), m.toolkit("12.8")),
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
                m.toolkits(m.toolkit("11.8"), m.toolkit("12.4")),
                m.DEEPSPEED,
                m.ANY,
                m.NO_ENV,
                m.kernel(),
                m.gpus("A100"),
            ),
            ["ok"],
        ),
        (
            (
                m.torch(),
                m.toolkits(m.toolkit("11.8"), m.toolkit("12.8")),
                m.DEEPSPEED,
                m.OFFLOAD,
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
