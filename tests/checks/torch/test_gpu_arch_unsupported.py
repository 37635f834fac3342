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
        pytest.param(
            {
                "torch_build": m.torch(),
                "torch_live": m.live(arch_list=("sm_75", "sm_80", "sm_86", "sm_90")),
                "gpus": m.gpus("4090"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["ok"],
            id="an RTX 4090 runs the code for sm_86",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "torch_live": m.live(arch_list=("sm_75", "sm_80")),
                "gpus": m.gpus("V100"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["fail"],
            id="torch has no code for a V100",
        ),
        pytest.param(
            {
                "torch_build": m.torch("2.5.1+cu124", "12.4"),
                "gpus": m.gpus("5090"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["fail"],
            id="the table says that torch cu124 has no code for an RTX 5090",
        ),
        pytest.param(
            {
                "torch_build": m.torch("1.7.1", "10.2"),
                "gpus": m.gpus("A100"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["fail"],
            id="a torch that no table has was built with a CUDA older than an A100",
        ),
        pytest.param(
            {
                "torch_build": m.torch("1.7.1", "10.2"),
                "torch_live": m.live(arch_list=("sm_70", "sm_75", "compute_37")),
                "gpus": m.gpus("A100"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["warn"],
            id="PTX of a CUDA older than an A100 is compiled, but the libraries have no code",
        ),
        pytest.param(
            {
                "torch_build": m.torch("2.9.1", "12.8"),
                "torch_live": m.live(arch_list=("sm_80", "compute_90")),
                "gpus": m.gpus("5090"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["ok"],
            id="PTX is enough where torch's CUDA knows the GPU",
        ),
        pytest.param(
            {
                "torch_build": m.torch("2.9.1", "12.8"),
                "gpus": m.gpus("V100"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["ok"],
            id="the table says that torch cu128 has code for a V100",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "torch_live": m.live(arch_list=()),
                "gpus": m.gpus("A100"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["ok"],
            id="torch lists no architectures, so the table decides",
        ),
        pytest.param(
            {
                "torch_build": m.torch("2.99.0", "99.0"),
                "torch_live": m.live(arch_list=()),
                "gpus": m.gpus("A100"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["skip"],
            id="torch lists no architectures and is newer than the table",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "torch_live": m.live(arch_list=("sm_80", "compute_80")),
                "gpus": m.gpus("5090"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["ok"],
            id="an RTX 5090 compiles the PTX for sm_80",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "torch_live": m.live(arch_list=("sm_80",)),
                "gpus": m.gpus("A100", "V100"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["warn"],
            id="torch has code for the A100 but not for the V100 beside it",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "torch_live": m.live(arch_list=("sm_80",)),
                "gpus": m.gpus("A100", "V100"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
                "run_needs": RunNeeds(gpus=("1",)),
            },
            ["fail"],
            id="the run uses the V100, for which torch has no code",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "torch_live": m.live(arch_list=("sm_80",)),
                "gpus": m.gpus("A100", "V100"),
                "os_info": m.LINUX,
                "environment": m.env(CUDA_VISIBLE_DEVICES="0"),
            },
            ["ok"],
            id="the V100 is hidden, for which torch has no code",
        ),
        pytest.param(
            {
                "torch_build": m.torch("2.13.0+cpu", None),
                "torch_live": m.live(),
                "gpus": m.gpus("A100"),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["skip"],
            id="a torch build for CPUs",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "torch_live": m.live(),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["skip"],
            id="the GPUs are unknown",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
