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
        pytest.param(
            {"torch_live": m.live(), "nvidia_kernel": m.kernel(), "gpus": m.gpus("A100")},
            ["ok"],
            id="torch initializes CUDA on an A100",
        ),
        pytest.param(
            {"torch_live": m.live(999), "nvidia_kernel": m.kernel(), "gpus": m.gpus("A100")},
            ["fail"],
            id="CUDA fails with an unknown error although the A100 is on the bus",
        ),
        pytest.param(
            {"torch_live": m.live(802), "nvidia_kernel": m.kernel(), "gpus": m.gpus("H100")},
            ["fail"],
            id="CUDA says that the system of an H100 is not ready yet",
        ),
        pytest.param(
            {
                "torch_live": m.live(34),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("H100"),
                "lib_cuda": m.libcuda(),
            },
            ["fail"],
            id="CUDA loads the stub library instead of the driver's",
        ),
        pytest.param(
            {"torch_live": m.live(999), "nvidia_kernel": m.NO_GPU},
            ["ok"],
            id="an unknown error on a machine without an NVIDIA GPU",
        ),
        pytest.param(
            {"torch_live": m.live(100), "nvidia_kernel": m.kernel(), "gpus": m.gpus("A100")},
            ["ok"],
            id="CUDA sees no device, which is not a state of the driver",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
