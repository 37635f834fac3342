from __future__ import annotations

import pytest

from dsdoctor_checks.driver import driver_too_old
from tests.checks import machines as m

CHECK = driver_too_old.driver_supports_torch.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            (
                m.torch(),
                m.kernel("535.104.05"),
                m.nvml("535.104.05"),
                m.ABSENT,
                m.libcuda("535.104.05"),
                m.gpus("A100"),
                m.NOT_ASKED,
                m.ANY,
            ),
            ["ok"],
        ),
        (
            (
                m.torch("2.11.0", "13.0"),
                m.kernel("535.104.05"),
                m.nvml("535.104.05"),
                m.ABSENT,
                m.libcuda("535.104.05"),
                m.gpus("A100"),
                m.NOT_ASKED,
                m.ANY,
            ),
            ["fail"],
        ),
        (
            (
                m.torch("2.11.0", "13.0"),
                m.kernel("535.104.05"),
                m.nvml("535.104.05"),
                m.ABSENT,
                m.libcuda("580.65.06", compat=True),
                m.gpus("A100"),
                m.NOT_ASKED,
                m.ANY,
            ),
            ["ok"],
        ),
        (
            (
                m.torch("2.11.0", "13.0"),
                m.kernel("535.104.05"),
                m.nvml("535.104.05"),
                m.ABSENT,
                m.libcuda("580.65.06", compat=True),
                m.gpus("4090"),
                m.NOT_ASKED,
                m.ANY,
            ),
            ["fail"],
        ),
        (
            (
                m.torch("2.11.0", "13.0"),
                m.kernel("535.104.05"),
                m.nvml("535.104.05"),
                m.ABSENT,
                m.libcuda("580.65.06", compat=True),
                m.gpus("4090"),
                m.live(),
                m.ANY,
            ),
            ["ok"],
        ),
        (
            (
                m.torch("2.11.0", "13.0"),
                m.kernel("580.65.06"),
                m.nvml("580.65.06"),
                m.ABSENT,
                m.libcuda("580.65.06", compat=True),
                m.gpus("4090"),
                m.NOT_ASKED,
                m.ANY,
            ),
            ["ok"],
        ),
        (
            (
                m.torch("2.11.0", "13.0"),
                m.kernel("580.95.05"),
                m.nvml("580.95.05"),
                m.ABSENT,
                m.libcuda("580.95.05"),
                m.gpus("A100"),
                m.live(35),
                m.ANY,
            ),
            ["fail"],
        ),
        (
            (
                m.torch("2.13.0+cpu", None),
                m.kernel("535.104.05"),
                m.nvml("535.104.05"),
                m.ABSENT,
                m.libcuda("535.104.05"),
                m.gpus("A100"),
                m.NOT_ASKED,
                m.ANY,
            ),
            ["skip"],
        ),
        ((m.torch(), m.NO_GPU, m.ABSENT, m.ABSENT, m.ABSENT, m.ABSENT, m.ABSENT, m.ANY), ["skip"]),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
