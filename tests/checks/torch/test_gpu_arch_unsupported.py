from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.torch import gpu_arch_unsupported
from tests.checks import machines as m

CHECK = gpu_arch_unsupported.torch_has_code_for_gpus


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            {
                "torch_build": m.torch(),
                "torch_live": m.live(arch_list=("sm_75", "sm_80", "sm_86", "sm_90")),
                "gpus": m.gpus("4090"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["ok"],
        ),
        (
            {
                "torch_build": m.torch(),
                "torch_live": m.live(arch_list=("sm_75", "sm_80")),
                "gpus": m.gpus("V100"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["fail"],
        ),
        (
            {
                "torch_build": m.torch("2.5.1+cu124", "12.4"),
                "gpus": m.gpus("5090"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["fail"],
        ),
        (
            {
                "torch_build": m.torch("2.9.1", "12.8"),
                "gpus": m.gpus("V100"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["ok"],
        ),
        (
            {
                "torch_build": m.torch(),
                "torch_live": m.live(arch_list=()),
                "gpus": m.gpus("A100"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["ok"],
        ),
        (
            {
                "torch_build": m.torch("2.99.0", "99.0"),
                "torch_live": m.live(arch_list=()),
                "gpus": m.gpus("A100"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["skip"],
        ),
        (
            {
                "torch_build": m.torch(),
                "torch_live": m.live(arch_list=("sm_80", "compute_80")),
                "gpus": m.gpus("5090"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["ok"],
        ),
        (
            {
                "torch_build": m.torch(),
                "torch_live": m.live(arch_list=("sm_80",)),
                "gpus": m.gpus("A100", "V100"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["warn"],
        ),
        (
            {
                "torch_build": m.torch(),
                "torch_live": m.live(arch_list=("sm_80",)),
                "gpus": m.gpus("A100", "V100"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
                "run_needs": RunNeeds(gpus=("1",)),
            },
            ["fail"],
        ),
        (
            {
                "torch_build": m.torch(),
                "torch_live": m.live(arch_list=("sm_80",)),
                "gpus": m.gpus("A100", "V100"),
                "os_info": m.LINUX,
                "environment": m.env(CUDA_VISIBLE_DEVICES="0"),
            },
            ["ok"],
        ),
        (
            {
                "torch_build": m.torch("2.13.0+cpu", None),
                "torch_live": m.live(),
                "gpus": m.gpus("A100"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["skip"],
        ),
        (
            {
                "torch_build": m.torch(),
                "torch_live": m.live(),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["skip"],
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
