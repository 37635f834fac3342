from __future__ import annotations

import pytest

from dsdoctor_checks.driver import cuda_init_driver_state
from tests.checks import machines as m

CHECK = cuda_init_driver_state.driver_state_is_good.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((m.live(), m.kernel(), m.gpus("A100"), m.ABSENT), []),
        ((m.live(999), m.kernel(), m.gpus("A100"), m.ABSENT), ["fail"]),
        ((m.live(802), m.kernel(), m.gpus("H100"), m.ABSENT), ["fail"]),
        ((m.live(34), m.kernel(), m.gpus("H100"), m.libcuda()), ["fail"]),
        ((m.live(999), m.NO_GPU, m.ABSENT, m.ABSENT), []),
        ((m.live(100), m.kernel(), m.gpus("A100"), m.ABSENT), []),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
