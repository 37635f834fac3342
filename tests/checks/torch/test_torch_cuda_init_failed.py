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
        (
            {
                "torch_live": m.live(devices=(m.device("A100"),)),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
                "environment": m.NO_ENV,
            },
            ["ok"],
        ),
        (
            {
                "torch_live": m.live(101, cuda_error="invalid"),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
                "environment": m.NO_ENV,
            },
            ["fail"],
        ),
        (
            {
                "torch_live": m.live(802),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
                "environment": m.NO_ENV,
            },
            ["fail"],  # fabric-manager-not-running speaks in its place
        ),
        ({"torch_live": m.live(100), "nvidia_kernel": m.NO_GPU, "environment": m.NO_ENV}, ["skip"]),
        (
            {
                "torch_live": m.live(devices=(m.device("A100", ok=False, error="boom"),)),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
                "environment": m.NO_ENV,
            },
            ["fail"],
        ),
        (
            {
                "torch_live": m.live(
                    devices=(m.device("A100", ok=False, error="busy", error_code=46),)
                ),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
                "environment": m.NO_ENV,
            },
            ["fail"],  # in exclusive mode gpu-busy-exclusive-mode speaks in its place
        ),
        (
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
        ),
        (
            {
                "torch_live": TorchLive(imported=ImportOutcome(ok=False, error_type="OSError")),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("A100"),
                "environment": m.NO_ENV,
            },
            ["skip"],
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
