from __future__ import annotations

import pytest

from dsdoctor_checks.torch import cpu_only_torch
from tests.checks import machines as m

CHECK = cpu_only_torch.torch_has_cuda.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((m.torch(), m.gpus("A100"), m.kernel(), m.nvml(), m.NO_ENV, m.ANY), ["ok"]),
        (
            (m.torch("2.13.0+cpu", None), m.gpus("A100"), m.kernel(), m.nvml(), m.NO_ENV, m.ANY),
            ["fail"],
        ),
        ((m.torch("2.13.0+cpu", None), m.ABSENT, m.NO_GPU, m.ABSENT, m.NO_ENV, m.ANY), ["skip"]),
        ((m.torch("2.13.0+cpu", None), m.ABSENT, m.NO_GPU, m.ABSENT, m.NO_ENV, m.WANTS), ["fail"]),
        (
            (
                m.torch("2.13.0+cpu", None),
                m.gpus("A100"),
                m.kernel(),
                m.nvml(),
                m.env(CUDA_VISIBLE_DEVICES=""),
                m.ANY,
            ),
            ["skip"],
        ),
        (
            (
                m.torch("2.9.1", None, hip="6.4"),
                m.gpus("A100"),
                m.kernel(),
                m.nvml(),
                m.NO_ENV,
                m.ANY,
            ),
            ["ok"],
        ),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
