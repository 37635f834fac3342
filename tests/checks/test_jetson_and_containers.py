"""Jetsons, AMD GPUs of a Slurm job, and containers that got GPUs without their libraries."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor.api import (
    DeepSpeedLive,
    Environment,
    Gpus,
    ImportOutcome,
    LibCuda,
    Nvml,
    NvmlError,
    OsInfo,
    Package,
    Packages,
    RunNeeds,
)
from dsdoctor.testing import judge
from dsdoctor_checks._util import other_accelerator
from dsdoctor_checks.cluster import slurm_gpus_not_visible
from dsdoctor_checks.container import docker_gpu_runtime_missing
from dsdoctor_checks.driver import driver_too_old, no_gpu_visible, nvml_unusable
from dsdoctor_checks.torch import cpu_only_torch
from tests.checks import machines as m

JETSON = OsInfo(system="Linux", release="5.10.120-tegra", machine="aarch64", hostname="orin")
NO_NVML = Nvml(error=NvmlError(code=12, name="LIBRARY_NOT_FOUND", message="x", call="nvmlInit"))
TOO_OLD = m.live(
    works=False,
    cuda_error="The NVIDIA driver on your system is too old (found version 11040). Please update",
)


def orin(**more: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "os_info": JETSON,
        "nvidia_kernel": m.NO_GPU,
        "nvml": NO_NVML,
        "environment": m.NO_ENV,
        "torch_build": m.torch("2.0.0a0+nv23.02", "11.4"),
        "torch_live": m.live(devices=(m.device("A100"),)),
    }
    return {**facts, **more}


def test_a_jetson_without_nvml_is_sound() -> None:
    assert judge(nvml_unusable.nvml_answers, **orin()).status == "skip"
    assert judge(no_gpu_visible.some_gpu_visible, **orin()).status == "ok"
    server = {**orin(), "os_info": m.LINUX}
    assert judge(nvml_unusable.nvml_answers, **server).status == "warn"


def test_a_jetson_whose_torch_is_too_new() -> None:
    facts = orin(torch_build=m.torch("2.3.0", "12.2"), torch_live=TOO_OLD)
    found = judge(driver_too_old.driver_supports_torch, **facts)
    assert found.status == "fail"
    assert "CUDA 11.4" in found.worst.message
    assert "cuda-compat-12-2" in found.worst.hint


@pytest.mark.parametrize(
    ("live", "cuda", "expected"),
    [
        pytest.param(TOO_OLD, "11.3", "skip", id="torch was built for an older CUDA"),
        pytest.param(m.live(works=False, cuda_error="x"), "12.2", "skip", id="torch names none"),
        pytest.param(m.ABSENT, "12.2", "skip", id="torch was not started"),
    ],
)
def test_a_driver_that_nothing_reports(live: Any, cuda: str, expected: str) -> None:
    facts = orin(torch_build=m.torch("2.3.0", cuda), torch_live=live)
    assert judge(driver_too_old.driver_supports_torch, **facts).status == expected


def test_a_jetson_with_torch_for_the_cpu() -> None:
    facts = orin(torch_build=m.torch("2.9.0", None), torch_live=m.ABSENT)
    assert judge(cpu_only_torch.torch_has_cuda, **facts).status == "fail"
    assert judge(cpu_only_torch.torch_has_cuda, **{**facts, "os_info": m.LINUX}).status == "skip"


def test_a_jetson_whose_gpu_torch_does_not_reach() -> None:
    facts = orin(torch_live=m.live(works=False, cuda_error="error 801"))
    found = judge(no_gpu_visible.some_gpu_visible, **facts)
    assert found.status == "warn"
    assert "error 801" in found.worst.message


AMD = msgspec.structs.replace(m.LINUX, amd_gpus=8, kfd_writable=True)
ROCM = m.torch("2.10.0", None, hip="7.0")


@pytest.mark.parametrize(
    ("torch", "expected"),
    [
        pytest.param(ROCM, "skip", id="a build for ROCm, whose GPUs NVML does not count"),
        pytest.param(m.torch(), "fail", id="a build for CUDA"),
    ],
)
def test_eight_amd_gpus_of_a_slurm_job(torch: Any, expected: str) -> None:
    found = judge(
        slurm_gpus_not_visible.allocation_is_visible,
        environment=Environment(variables={"SLURM_JOB_ID": "1", "SLURM_GPUS_ON_NODE": "8"}),
        gpus=m.ABSENT,
        torch_build=torch,
    )
    assert found.status == expected


@pytest.mark.parametrize(
    ("container", "writable", "expected"),
    [
        pytest.param("docker", None, "fail", id="a container without /dev/kfd"),
        pytest.param("docker", True, "ok", id="a container with it"),
        pytest.param(None, None, "ok", id="a machine whose devices torch cannot start"),
    ],
)
def test_amd_gpus_that_were_not_passed_on(
    container: str | None, writable: bool | None, expected: str
) -> None:
    os = msgspec.structs.replace(AMD, container=container, kfd_writable=writable)
    found = judge(
        no_gpu_visible.some_gpu_visible,
        os_info=os,
        nvidia_kernel=m.NO_GPU,
        environment=m.NO_ENV,
        torch_build=ROCM,
        torch_live=m.live(works=False, cuda_error="No HIP GPUs are available"),
    )
    assert found.status == expected


def inside(container: str, **more: Any) -> Any:
    facts: dict[str, Any] = {
        "os_info": msgspec.structs.replace(m.LINUX, container=container),
        "nvidia_kernel": m.kernel(),
        "environment": m.NO_ENV,
        "lib_cuda": LibCuda(),
        "torch_live": m.live(works=False, cuda_error="Found no NVIDIA driver on your system."),
        "gpus": m.ABSENT,
        "run_needs": m.ANY,
    }
    check = docker_gpu_runtime_missing.runtime_hands_gpus_over
    return judge(check, **{**facts, **more})


MOUNTED = LibCuda(others=("/usr/local/nvidia/lib64/libcuda.so.1",))


@pytest.mark.parametrize(
    ("container", "more", "expected", "hint"),
    [
        pytest.param("enroot", {}, "fail", "NVIDIA_VISIBLE_DEVICES=all", id="devices of enroot"),
        pytest.param("kubernetes", {}, "fail", "runtimeClassName", id="devices of a plugin"),
        pytest.param(
            "kubernetes", {"lib_cuda": MOUNTED}, "fail",
            "LD_LIBRARY_PATH=/usr/local/nvidia/lib64", id="libraries that the loader does not find",
        ),
        pytest.param("docker", {"lib_cuda": m.libcuda()}, "ok", "", id="devices and libcuda"),
        pytest.param("docker", {"torch_live": m.ABSENT}, "ok", "", id="nobody looked for a GPU"),
    ],
)  # fmt: skip
def test_devices_without_libraries(
    container: str, more: dict[str, Any], expected: str, hint: str
) -> None:
    found = inside(container, **more)
    assert found.status == expected
    assert hint in found.worst.hint


def test_a_driver_without_its_version() -> None:
    """`/proc/driver/nvidia` can be hidden in a container, its modules not."""
    bare = msgspec.structs.replace(m.kernel(), module_version=None, device_nodes=())
    asked = {"environment": m.env(NVIDIA_VISIBLE_DEVICES="all"), "nvidia_kernel": bare}
    assert inside("docker", **asked).status == "fail"


def installed(**versions: str) -> Packages:
    names = {name.replace("_", "-"): version for name, version in versions.items()}
    return Packages(packages={n: Package(name=n, version=v) for n, v in names.items()})


@pytest.mark.parametrize(
    ("torch", "packages", "chosen", "expected"),
    [
        pytest.param(m.torch("2.8.0+xpu", None), installed(), None, True, id="torch for XPUs"),
        pytest.param(
            m.torch("2.0.1a0", None),
            installed(intel_extension_for_pytorch="2.0.110+xpu"), None, True, id="an extension",
        ),
        pytest.param(
            m.torch("2.0.1", None),
            installed(intel_extension_for_pytorch="2.0.100+cpu"), None, False, id="one for CPUs",
        ),
        pytest.param(m.torch("2.8.0+xpu", None), installed(), "cpu", False, id="DeepSpeed's choice"),
    ],
)  # fmt: skip
def test_builds_for_xpus(torch: Any, packages: Any, chosen: str | None, expected: bool) -> None:
    live = (
        DeepSpeedLive(imported=ImportOutcome(ok=True), accelerator=chosen) if chosen else m.ABSENT
    )
    found = other_accelerator(torch, live, packages, m.NO_ENV)
    assert (found is not None) is expected


def test_gpus_of_a_job_without_any() -> None:
    run = RunNeeds(expect_gpus=8)
    found = judge(
        slurm_gpus_not_visible.allocation_is_visible,
        environment=Environment(variables={"SLURM_JOB_ID": "1", "SLURM_PROCID": "0"}),
        gpus=Gpus(count=0),
        run_needs=run,
    )
    assert found.status == "fail"
