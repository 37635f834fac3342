from __future__ import annotations

import pytest

from dsdoctor.api import NvidiaSmi
from dsdoctor_checks.driver import nvidia_smi_broken
from tests.checks import machines as m

CHECK = nvidia_smi_broken.nvidia_smi_answers.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((m.smi(), m.kernel(), m.gpus("A100"), m.live(), m.ANY), []),
        ((NvidiaSmi(), m.NO_GPU, m.ABSENT, m.ABSENT, m.ANY), []),
        ((m.smi(returncode=9, error="no driver"), m.NO_GPU, m.ABSENT, m.ABSENT, m.ANY), ["warn"]),
        (
            (m.smi(returncode=9, error="no driver"), m.kernel(None), m.ABSENT, m.ABSENT, m.ANY),
            ["fail"],
        ),
        (
            (m.smi(error="its output is not text"), m.kernel(), m.gpus("A100"), m.ABSENT, m.ANY),
            ["warn"],
        ),
        (
            (
                m.smi(returncode=None, timed_out=True, error="x"),
                m.kernel(),
                m.ABSENT,
                m.ABSENT,
                m.ANY,
            ),
            [],
        ),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
