from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor.api import RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.torch import cpu_only_torch
from dsdoctor_checks.torch._builds import choose
from tests.checks import machines as m

CHECK = cpu_only_torch.torch_has_cuda


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            {
                "torch_build": m.torch(),
                "gpus": m.gpus("A100"),
                "nvidia_kernel": m.kernel(),
                "nvml": m.nvml(),
                "environment": m.NO_ENV,
            },
            ["ok"],
            id="a CUDA build on an A100",
        ),
        pytest.param(
            {
                "torch_build": m.torch("2.13.0+cpu", None),
                "gpus": m.gpus("A100"),
                "nvidia_kernel": m.kernel(),
                "nvml": m.nvml(),
                "environment": m.NO_ENV,
            },
            ["fail"],
            id="a build for CPUs on an A100",
        ),
        pytest.param(
            {
                "torch_build": m.torch("2.13.0+cpu", None),
                "nvidia_kernel": m.NO_GPU,
                "environment": m.NO_ENV,
            },
            ["skip"],
            id="a build for CPUs on a machine without a GPU",
        ),
        pytest.param(
            {
                "torch_build": m.torch("2.13.0+cpu", None),
                "nvidia_kernel": m.NO_GPU,
                "environment": m.NO_ENV,
                "run_needs": m.WANTS,
            },
            ["fail"],
            id="a build for CPUs without a GPU, but the run needs one",
        ),
        pytest.param(
            {
                "torch_build": m.torch("2.13.0+cpu", None),
                "gpus": m.gpus("A100"),
                "nvidia_kernel": m.kernel(),
                "nvml": m.nvml(),
                "environment": m.env(CUDA_VISIBLE_DEVICES=""),
            },
            ["skip"],
            id="a build for CPUs while the A100 is hidden on purpose",
        ),
        pytest.param(
            {
                "torch_build": m.torch("2.9.1", None, hip="6.4"),
                "gpus": m.gpus("A100"),
                "nvidia_kernel": m.kernel(),
                "nvml": m.nvml(),
                "environment": m.NO_ENV,
            },
            ["ok"],
            id="a build for ROCm beside an A100",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected


@pytest.mark.parametrize(
    ("card", "driver", "index"),
    [
        ("5090", "580.95.05", "cu130"),
        ("T4", "580.95.05", "cu130"),
        ("T4", "535.104.05", "cu126"),
        ("V100", "580.95.05", "cu126"),
    ],
)
def test_the_hint_names_the_index_that_the_fix_takes(card: str, driver: str, index: str) -> None:
    gpus, torch = m.gpus(card), m.torch("2.13.0+cpu", None)
    found = judge(CHECK, torch_build=torch, gpus=gpus, nvidia_kernel=m.kernel(driver))
    (finding,) = found.findings
    assert f"'torch==2.13.0' --index-url https://download.pytorch.org/whl/{index}`" in finding.hint
    build = choose((2, 13), driver, {gpu.cc for gpu in gpus.gpus if gpu.cc}, "x86_64", None)
    assert build is not None
    assert build.index.endswith(f"/{index}")


def test_no_index_is_named_where_nothing_of_the_machine_is_known() -> None:
    (finding,) = judge(
        CHECK, torch_build=m.torch("2.13.0+cpu", None), nvidia_kernel=m.NO_GPU, run_needs=m.WANTS
    ).findings
    assert finding.hint == "install a CUDA build of torch that the job's driver supports"


@pytest.mark.parametrize(
    ("run", "status"),
    [
        pytest.param(m.ANY, "warn", id="it may be the one in the CPU"),
        pytest.param(m.WANTS, "fail", id="GPUs are asked for"),
    ],
)
def test_a_cpu_build_on_a_machine_with_amd_gpus(run: RunNeeds, status: str) -> None:
    os = msgspec.structs.replace(m.LINUX, amd_gpus=8)
    facts: dict[str, Any] = {"nvidia_kernel": m.NO_GPU, "environment": m.NO_ENV, "os_info": os}
    found = judge(CHECK, torch_build=m.torch("2.13.0+cpu", None), run_needs=run, **facts)
    assert found.statuses == [status]
    assert "this machine has 8 × AMD GPU" in found.worst.message
    assert "ROCm build" in (found.worst.hint or "")
