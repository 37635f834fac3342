"""Rows of `driver-too-old` about Triton, whose `ptxas` is of a CUDA of its own."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import LaunchCommand, Package, Packages, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.driver import driver_too_old
from tests.checks import machines as m

CHECK = driver_too_old.driver_supports_torch


def packages(triton: str | None, *others: str) -> Packages:
    versions = dict.fromkeys(others, "1.0") | ({"triton": triton} if triton else {})
    return Packages(packages={k: Package(name=k, version=v) for k, v in versions.items()})


def told(driver: str, card: str, cuda: str, installed: Packages, **more: Any) -> list[str]:
    """Messages of what is wrong."""
    facts = {
        "torch_build": m.torch("2.6.0", cuda),
        "nvidia_kernel": m.kernel(driver),
        "nvml": m.nvml(driver),
        "lib_cuda": m.libcuda(driver),
        "gpus": m.gpus(card),
        "packages": installed,
        **more,
    }
    return [finding.message for finding in judge(CHECK, **facts).bad]


@pytest.mark.parametrize(
    ("driver", "card", "cuda", "triton", "expected"),
    [
        pytest.param("520.61.05", "4090", "11.8", "3.2.0", "CUDA 12.4", id="an 11.8 driver"),
        pytest.param("470.182.03", "A100", "11.8", "2.2.0", "CUDA 12.3", id="driver 470"),
        pytest.param("525.85.12", "A100", "11.8", "3.2.0", None, id="any driver of CUDA 12"),
        pytest.param("535.104.05", "A100", "12.8", "3.4.0", None, id="an older minor version"),
        pytest.param("520.61.05", "4090", "11.8", "9.9.0", None, id="a release of no table"),
        pytest.param("520.61.05", "4090", "11.8", None, None, id="no Triton"),
        pytest.param("570.133.20", "B200", "12.8", "3.7.0", "CUDA 13.1", id="its other ptxas"),
        pytest.param("570.133.20", "H100", "12.8", "3.7.0", None, id="only for Blackwell"),
        pytest.param("570.133.20", "B200", "12.8", "3.6.0", None, id="of CUDA 12.9"),
        pytest.param("580.95.05", "B200", "12.8", "3.7.0", None, id="a driver of CUDA 13"),
    ],
)
def test_drivers(driver: str, card: str, cuda: str, triton: str, expected: str | None) -> None:
    found = told(driver, card, cuda, packages(triton, "vllm"))
    assert len(found) == (expected is not None)
    if expected:
        assert f"of {expected}, but driver {driver}" in found[0]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param({}, False, id="nothing is known to compile"),
        pytest.param({"launch_command": ("--torch_compile", "True")}, True, id="an option"),
        pytest.param({"launch_command": ("--torch_compile", "--bf16")}, True, id="a switch"),
        pytest.param({"launch_command": ("--torch_compile", "False")}, False, id="switched off"),
        pytest.param(
            {"run_needs": RunNeeds(trainer_values={"enable_liger_kernel": "true"})}, True, id="YAML"
        ),
        pytest.param(
            {
                "launch_command": ("--torch_compile",),
                "environment": m.env(TRITON_PTXAS_PATH="/usr/local/cuda-11.8/bin/ptxas"),
            },
            False,
            id="another ptxas is chosen",
        ),
    ],
)
def test_what_compiles(more: dict[str, Any], expected: bool) -> None:
    if "launch_command" in more:
        more = {**more, "launch_command": LaunchCommand(script_args=more["launch_command"])}
    assert bool(told("520.61.05", "4090", "11.8", packages("3.2.0"), **more)) == expected


def test_accelerate_names_a_backend() -> None:
    for backend, expected in (("inductor", True), ("no", False), ("eager", False)):
        command = LaunchCommand(launcher="accelerate", options={"dynamo_backend": backend})
        found = told("520.61.05", "4090", "11.8", packages("3.2.0"), launch_command=command)
        assert bool(found) == expected


def test_the_compatibility_library_serves_triton_too() -> None:
    compat = m.libcuda("550.54.15", compat=True)
    assert told("520.61.05", "A100", "11.8", packages("3.2.0", "vllm"), lib_cuda=compat) == []
