from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import ImportOutcome, TorchLive
from dsdoctor.testing import judge
from dsdoctor_checks.torch import torch_cuda_init_failed
from tests.checks import machines as m

CHECK = torch_cuda_init_failed.cuda_initializes


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            {
                "torch_live": m.live(devices=(m.device("A100"),)),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
                "environment": m.NO_ENV,
            },
            ["ok"],
            id="CUDA runs on the A100",
        ),
        pytest.param(
            {
                "torch_live": m.live(101, cuda_error="invalid"),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
                "environment": m.NO_ENV,
            },
            ["fail"],
            id="CUDA refuses the device number",
        ),
        pytest.param(
            {
                "torch_live": m.live(802),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
                "environment": m.NO_ENV,
            },
            ["fail"],  # fabric-manager-not-running speaks in its place
            id="CUDA says that the system is not ready yet",
        ),
        pytest.param(
            {"torch_live": m.live(100), "nvidia_kernel": m.NO_GPU, "environment": m.NO_ENV},
            ["skip"],
            id="CUDA sees no device on a machine without a GPU",
        ),
        pytest.param(
            {
                "torch_live": m.live(devices=(m.device("A100", ok=False, error="boom"),)),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
                "environment": m.NO_ENV,
            },
            ["fail"],
            id="the A100 fails at its first operation",
        ),
        pytest.param(
            {
                "torch_live": m.live(
                    devices=(m.device("A100", ok=False, error="busy", error_code=46),)
                ),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
                "environment": m.NO_ENV,
            },
            ["fail"],  # in exclusive mode gpu-busy-exclusive-mode speaks in its place
            id="another process has taken the A100",
        ),
        pytest.param(
            {
                "torch_live": TorchLive(
                    imported=ImportOutcome(ok=True),
                    died="hung for 120 s",
                    last_step="torch.cuda.init",
                ),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
                "environment": m.NO_ENV,
            },
            ["fail"],
            id="the process hangs while CUDA starts",
        ),
        pytest.param(
            {
                "torch_live": TorchLive(imported=ImportOutcome(ok=False, error_type="OSError")),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
                "environment": m.NO_ENV,
            },
            ["skip"],
            id="torch does not import, which another check reports",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
