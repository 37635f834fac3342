"""The verdict matrix: whole machines, and what the checks that matter say of each."""

from __future__ import annotations

from typing import Any

from dsdoctor.api import Finding
from dsdoctor.testing import judge
from dsdoctor_checks.cuda import cuda_toolkit_mismatch
from dsdoctor_checks.driver import driver_too_old
from dsdoctor_checks.torch import cpu_only_torch, gpu_arch_unsupported
from tests.checks import machines as m


def driver(torch: Any, card: str, kernel: str, loaded: str, *, compat: bool) -> Finding:
    found = judge(
        driver_too_old.driver_supports_torch,
        torch_build=torch,
        nvidia_kernel=m.kernel(kernel),
        nvml=m.nvml(kernel),
        lib_cuda=m.libcuda(loaded, compat=compat),
        gpus=m.gpus(card),
    ).findings
    return next(iter(found))


def arch(torch: Any, live: Any, card: str) -> Finding:
    found = judge(
        gpu_arch_unsupported.torch_has_code_for_gpus,
        torch_build=torch,
        torch_live=live,
        gpus=m.gpus(card),
        os_info=m.LINUX,
        environment=m.NO_ENV,
    ).findings
    return next(iter(found))


def test_driver_535_serves_cu128_and_only_the_toolkit_is_judged() -> None:
    found = driver(m.torch(), "A100", "535.104.05", "535.104.05", compat=False)
    assert found.status.value == "ok"
    toolkit = judge(
        cuda_toolkit_mismatch.toolkit_matches_torch,
        torch_build=m.torch(),
        cuda_toolkits=m.toolkits(m.toolkit("11.8")),
        deep_speed_install=m.DEEPSPEED,
        run_needs=m.ADAM,
        environment=m.NO_ENV,
        nvidia_kernel=m.kernel("535.104.05"),
        gpus=m.gpus("A100"),
    ).findings
    assert m.words(toolkit) == ["warn"]


def test_driver_535_is_too_old_for_cu130() -> None:
    torch = m.torch("2.11.0+cu130", "13.0")
    found = driver(torch, "A100", "535.104.05", "535.104.05", compat=False)
    assert found.status.value == "fail"
    assert found.message == (
        "driver 535.104.05 supports up to CUDA 12.2, but torch 2.11.0+cu130 was built for CUDA 13.0"
    )
    assert "cuda-compat-13-0" in found.hint


def test_compat_library_serves_a_data_centre_gpu() -> None:
    torch = m.torch("2.11.0+cu130", "13.0")
    found = driver(torch, "A100", "535.104.05", "580.65.06", compat=True)
    assert found.status.value == "ok"


def test_compat_library_on_geforce_is_error_804() -> None:
    torch = m.torch("2.11.0+cu130", "13.0")
    found = driver(torch, "4090", "535.104.05", "580.65.06", compat=True)
    assert found.status.value == "fail"
    assert found.evidence["error"] == 804


def test_rtx_5090_needs_a_newer_wheel_than_cu124() -> None:
    torch = m.torch("2.5.1+cu124", "12.4")
    found = arch(torch, m.NOT_ASKED, "5090")
    assert found.status.value == "fail"
    assert found.evidence["source"] == "table"
    assert "whl/cu128" in found.hint


def test_cpu_wheel_on_an_a100_machine() -> None:
    found = judge(
        cpu_only_torch.torch_has_cuda,
        torch_build=m.torch("2.13.0+cpu", None),
        gpus=m.gpus("A100"),
        nvidia_kernel=m.kernel(),
        nvml=m.nvml(),
        environment=m.NO_ENV,
    ).findings
    assert m.words(found) == ["fail"]


def test_v100_names_the_wheel_that_serves_it() -> None:
    live = m.live(arch_list=("sm_75", "sm_80", "sm_86", "sm_90"), arch_source="get_arch_list")
    found = arch(m.torch("2.11.0+cu130", "13.0"), live, "V100")
    assert found.status.value == "fail"
    assert found.evidence["source"] == "get_arch_list"
    assert "torch==2.11" in found.hint
    assert "whl/cu126" in found.hint


def test_rtx_4090_is_served_by_sm_86() -> None:
    live = m.live(arch_list=("sm_80", "sm_86", "sm_90"))
    found = arch(m.torch(), live, "4090")
    assert found.status.value == "ok"
    assert "sm_86" in found.evidence["served_by"].values()
