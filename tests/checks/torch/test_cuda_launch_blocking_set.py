from __future__ import annotations

import pytest

from dsdoctor_checks.torch import cuda_launch_blocking_set
from tests.checks import machines as m

CHECK = cuda_launch_blocking_set.launches_do_not_block.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((m.NO_ENV, m.kernel(), m.ABSENT, m.ANY), []),
        ((m.env(CUDA_LAUNCH_BLOCKING="0"), m.kernel(), m.ABSENT, m.ANY), []),
        ((m.env(CUDA_LAUNCH_BLOCKING="1"), m.kernel(), m.ABSENT, m.ANY), ["warn"]),
        ((m.env(CUDA_LAUNCH_BLOCKING="1"), m.NO_GPU, m.ABSENT, m.ANY), ["skip"]),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
