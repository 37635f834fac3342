from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.testing import judge
from dsdoctor_checks.driver import cuda_init_driver_state
from tests.checks import machines as m

CHECK = cuda_init_driver_state.driver_state_is_good


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"torch_live": m.live(), "nvidia_kernel": m.kernel(), "gpus": m.gpus("A100")}, ["ok"]),
        (
            {"torch_live": m.live(999), "nvidia_kernel": m.kernel(), "gpus": m.gpus("A100")},
            ["fail"],
        ),
        (
            {"torch_live": m.live(802), "nvidia_kernel": m.kernel(), "gpus": m.gpus("H100")},
            ["fail"],
        ),
        (
            {
                "torch_live": m.live(34),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("H100"),
                "lib_cuda": m.libcuda(),
            },
            ["fail"],
        ),
        ({"torch_live": m.live(999), "nvidia_kernel": m.NO_GPU}, ["ok"]),
        ({"torch_live": m.live(100), "nvidia_kernel": m.kernel(), "gpus": m.gpus("A100")}, ["ok"]),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
