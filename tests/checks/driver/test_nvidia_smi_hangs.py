from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import NvidiaSmi
from dsdoctor.testing import judge
from dsdoctor_checks.driver import nvidia_smi_hangs
from tests.checks import machines as m

CHECK = nvidia_smi_hangs.nvidia_smi_returns


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param({"nvidia_smi": m.smi()}, ["ok"], id="nvidia-smi returns"),
        pytest.param({"nvidia_smi": NvidiaSmi()}, ["ok"], id="nvidia-smi is not installed"),
        pytest.param(
            {"nvidia_smi": m.smi(timed_out=True, returncode=None, error="timed out after 10 s")},
            ["fail"],
            id="nvidia-smi hangs and torch was not tried",
        ),
        pytest.param(
            {
                "nvidia_smi": m.smi(timed_out=True, returncode=None, error="timed out after 10 s"),
                "torch_live": m.live(),
            },
            ["warn"],
            id="nvidia-smi hangs, but torch works",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
