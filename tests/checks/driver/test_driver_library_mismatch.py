from __future__ import annotations

import pytest

from dsdoctor.api import Nvml, NvmlError
from dsdoctor_checks.driver import driver_library_mismatch
from tests.checks import machines as m

CHECK = driver_library_mismatch.module_matches_library.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((m.kernel("535.104.05"), m.nvml("535.104.05"), m.libcuda("535.104.05"), m.live()), []),
        ((m.kernel("535.104.05"), m.nvml("535.104.05"), m.libcuda("535.104.05"), m.NOT_ASKED), []),
        ((m.kernel("535.104.05"), m.ABSENT, m.libcuda("550.54.14"), m.NOT_ASKED), ["fail"]),
        ((m.kernel("535.104.05"), m.nvml("550.54.14"), m.ABSENT, m.NOT_ASKED), ["fail"]),
        (
            (
                m.kernel("535.104.05"),
                Nvml(error=NvmlError(code=18, name="X", message="x", call="nvmlInit")),
                m.ABSENT,
                m.ABSENT,
            ),
            ["fail"],
        ),
        (
            (
                m.kernel("535.104.05"),
                m.nvml("535.104.05"),
                m.libcuda("580.65.06", compat=True),
                m.NOT_ASKED,
            ),
            [],
        ),
        ((m.kernel("535.104.05"), m.ABSENT, m.libcuda("550.54.14"), m.live()), []),
        ((m.kernel(), m.nvml(), m.ABSENT, m.live(803)), ["fail"]),
        ((m.ABSENT, m.ABSENT, m.ABSENT, m.ABSENT), []),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
