from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor.api import CudaDevice, Gpus, Nvml, NvmlError, TorchBuild
from dsdoctor.testing import judge
from dsdoctor_checks.driver import nvml_unusable
from tests.checks import machines as m

CHECK = nvml_unusable.nvml_answers


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            {
                "nvml": m.nvml(),
                "gpus": m.gpus("A100"),
                "nvidia_kernel": m.kernel(),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["ok"],
            id="NVML lists the A100",
        ),
        pytest.param(
            {
                "nvml": m.TIMEOUT,
                "nvidia_kernel": m.kernel(),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["fail"],
            id="NVML does not answer in time",
        ),
        pytest.param(
            {"nvidia_kernel": m.kernel(), "os_info": m.LINUX, "environment": m.NO_ENV},
            ["skip"],
            id="nothing is known of NVML",
        ),
        pytest.param(
            {
                "nvml": Nvml(error=NvmlError(code=4, name="X", message="x", call="nvmlInit")),
                "nvidia_kernel": m.kernel(),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["fail"],
            id="NVML may not reach the device nodes",
        ),
        pytest.param(
            {
                "nvml": Nvml(error=NvmlError(code=18, name="X", message="x", call="nvmlInit")),
                "nvidia_kernel": m.kernel(),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["ok"],
            id="NVML does not match the module, which another check reports",
        ),
        pytest.param(
            {
                "nvml": Nvml(error=NvmlError(code=12, name="X", message="x", call="nvmlInit")),
                "nvidia_kernel": m.NO_GPU,
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["skip"],
            id="there is neither a GPU nor NVML",
        ),
        pytest.param(
            {
                "nvml": Nvml(error=NvmlError(code=9, name="X", message="x", call="nvmlInit")),
                "nvidia_kernel": m.NO_GPU,
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["skip"],
            id="NVML finds no driver on a machine without a GPU",
        ),
        pytest.param(
            {
                "nvml": Nvml(error=NvmlError(code=12, name="X", message="x", call="nvmlInit")),
                "nvidia_kernel": m.kernel(),
                "os_info": m.DOCKER,
                "environment": m.NO_ENV,
                "torch_live": m.live(),
            },
            ["warn"],
            id="a container without the NVML library in which torch works",
        ),
        pytest.param(
            {
                "nvml": Nvml(error=NvmlError(code=None, name="X", message="x", call="nvmlInit")),
                "nvidia_kernel": m.kernel(),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["skip"],
            id="NVML failed without an error code",
        ),
        pytest.param(
            {
                "nvml": m.nvml(),
                "gpus": Gpus(count=8, stopped_at="gpu 3: nvmlDeviceGetName"),
                "nvidia_kernel": m.kernel(),
                "os_info": m.LINUX,
                "environment": m.NO_ENV,
            },
            ["fail"],
            id="NVML stops answering at GPU 3 of 8",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected


@pytest.mark.parametrize(
    ("code", "wsl", "words"),
    [
        pytest.param(9, False, "dkms status", id="no-driver"),
        pytest.param(9, True, "wsl --update", id="no-driver-in-wsl"),
        pytest.param(12, True, "install no driver inside WSL", id="no-library-in-wsl"),
        pytest.param(999, False, "in a container, restart it", id="unknown-error"),
    ],
)
def test_what_to_do_depends_on_the_error_and_the_system(code: int, wsl: bool, words: str) -> None:
    error = NvmlError(code=code, name="X", message="x", call="nvmlInit")
    system = msgspec.structs.replace(m.LINUX, wsl=wsl)
    judged = judge(
        CHECK,
        nvml=Nvml(error=error),
        nvidia_kernel=m.kernel(),
        os_info=system,
        environment=m.NO_ENV,
    )
    assert words in judged.bad[0].hint


LIBRARY_ABSENT = Nvml(
    error=NvmlError(code=12, name="LIBRARY_NOT_FOUND", message="x", call="nvmlInit")
)
ROCM = TorchBuild(version="2.9.1+rocm6.4", hip="6.4.43484")
MI300X = CudaDevice(index=0, name="AMD Instinct MI300X", major=9, minor=4, memory_bytes=192 << 30)


def test_rocm_devices_need_no_nvml() -> None:
    works = m.live(works=True, devices=(MI300X,))
    facts: dict[str, Any] = {
        "nvml": LIBRARY_ABSENT,
        "nvidia_kernel": m.NO_GPU,
        "os_info": m.LINUX,
        "environment": m.NO_ENV,
        "torch_live": works,
    }
    (finding,) = judge(CHECK, **facts, torch_build=ROCM).findings
    assert finding.status.value == "skip"
    assert finding.message == "DeepSpeed uses AMD ROCm here, not an NVIDIA GPU"
