from __future__ import annotations

import pytest

from dsdoctor_checks.cuda import cuda_toolkit_incomplete
from tests.checks import machines as m

CHECK = cuda_toolkit_incomplete.toolkit_is_complete.function


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
                m.toolkits(m.toolkit("12.8", missing_headers=("cusparse.h",))),
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
                m.toolkits(m.toolkit("12.8", has_cudart=False)),
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
                m.toolkits(m.toolkit("12.8", has_cudart=False, trial_ok=True)),
                m.DEEPSPEED,
                m.ADAM,
                m.NO_ENV,
                m.kernel(),
                m.gpus("A100"),
            ),
            [],
        ),
        (
            (
                m.torch(),
                m.toolkits(m.toolkit("12.8", has_cudart=False)),
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
