from __future__ import annotations

import pytest

from dsdoctor.api import NvidiaSmi
from dsdoctor_checks.driver import nvidia_smi_hangs
from tests.checks import machines as m

CHECK = nvidia_smi_hangs.nvidia_smi_returns.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((m.smi(), m.ABSENT), []),
        ((NvidiaSmi(), m.ABSENT), []),
        (
            (m.smi(timed_out=True, returncode=None, error="timed out after 10 s"), m.ABSENT),
            ["fail"],
        ),
        (
            (m.smi(timed_out=True, returncode=None, error="timed out after 10 s"), m.live()),
            ["warn"],
        ),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
