from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import NvidiaSmi
from dsdoctor.testing import judge
from dsdoctor_checks.driver import nvidia_smi_broken
from tests.checks import machines as m

CHECK = nvidia_smi_broken.nvidia_smi_answers


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            {
                "nvidia_smi": m.smi(),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
                "torch_live": m.live(),
            },
            ["ok"],
        ),
        ({"nvidia_smi": NvidiaSmi(), "nvidia_kernel": m.NO_GPU}, ["ok"]),
        (
            {"nvidia_smi": m.smi(returncode=9, error="no driver"), "nvidia_kernel": m.NO_GPU},
            ["warn"],
        ),
        (
            {"nvidia_smi": m.smi(returncode=9, error="no driver"), "nvidia_kernel": m.kernel(None)},
            ["fail"],
        ),
        (
            {
                "nvidia_smi": m.smi(error="its output is not text"),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
            },
            ["warn"],
        ),
        (
            {
                "nvidia_smi": m.smi(returncode=None, timed_out=True, error="x"),
                "nvidia_kernel": m.kernel(),
            },
            ["ok"],
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
