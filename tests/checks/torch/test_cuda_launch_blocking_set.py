from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.testing import judge
from dsdoctor_checks.torch import cuda_launch_blocking_set
from tests.checks import machines as m

CHECK = cuda_launch_blocking_set.launches_do_not_block


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            {"environment": m.NO_ENV, "nvidia_kernel": m.kernel()},
            ["ok"],
            id="the variable is not set",
        ),
        pytest.param(
            {"environment": m.env(CUDA_LAUNCH_BLOCKING="0"), "nvidia_kernel": m.kernel()},
            ["ok"],
            id="the variable is set to 0",
        ),
        pytest.param(
            {"environment": m.env(CUDA_LAUNCH_BLOCKING="1"), "nvidia_kernel": m.kernel()},
            ["warn"],
            id="launches block on a machine with a GPU",
        ),
        pytest.param(
            {"environment": m.env(CUDA_LAUNCH_BLOCKING="1"), "nvidia_kernel": m.NO_GPU},
            ["skip"],
            id="launches block on a machine without a GPU",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
