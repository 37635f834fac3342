from __future__ import annotations

from typing import Any

import pytest

from dsdoctor import packs
from dsdoctor.api import (
    CudaDevice,
    Gpu,
    Gpus,
    ImportOutcome,
    OsInfo,
    Status,
    TorchBuild,
    TorchLive,
)
from dsdoctor.judge import judge as whole
from dsdoctor.model import snapshot as snapshots
from dsdoctor.testing import judge
from dsdoctor_checks.torch import torch_cuda_init_failed
from tests.checks import machines as m

CHECK = torch_cuda_init_failed.cuda_initializes
REGISTRY = packs.load(builtin_only=True)
NAME = "torch-cuda-init-failed"
BUSY = "CUDA error: CUDA-capable device(s) is/are busy or unavailable"


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


ROCM = m.torch("2.8.0", None, hip="6.4.43483")
AMD = OsInfo(system="Linux", release="6.8", machine="x86_64", hostname="node", amd_gpus=8)
NO_HIP = m.live(works=False, cuda_error="No HIP GPUs are available")


def test_amd_gpus_that_the_rocm_build_cannot_start_fail() -> None:
    found = judge(CHECK, torch_live=NO_HIP, torch_build=ROCM, os_info=AMD, nvidia_kernel=m.NO_GPU)
    assert found.statuses == ["fail"]
    assert "the kernel offers 8 AMD GPUs" in found.worst.message
    assert "No HIP GPUs are available" in found.worst.message
    assert "/dev/kfd" in (found.worst.hint or "")


@pytest.mark.parametrize(
    ("live", "torch", "os"),
    [
        pytest.param(m.live(devices=(m.device("A100"),)), ROCM, AMD, id="ROCm starts"),
        pytest.param(NO_HIP, ROCM, m.LINUX, id="no AMD GPU, which no-gpu-visible reports"),
        pytest.param(m.live(works=None), m.torch("2.8.0+cpu", None), AMD, id="a CPU build"),
    ],
)
def test_what_is_no_failure_of_rocm(live: TorchLive, torch: Any, os: OsInfo) -> None:
    found = judge(CHECK, torch_live=live, torch_build=torch, os_info=os, nvidia_kernel=m.NO_GPU)
    assert found.bad == []


def test_a_gpu_that_torchs_rocm_build_has_no_code_for() -> None:
    """HIP's error 98; with CUDA, the same number says something else."""
    device = CudaDevice(
        index=0, name="RX 6600", major=10, minor=3, ok=False, error_code=98,
        error="HIP error: invalid device function",
    )  # fmt: skip
    live = TorchLive(imported=ImportOutcome(ok=True), cuda_ok=True, devices=(device,))
    for build, said in ((TorchBuild(version="2.3.1+rocm6.0", hip="6.0"), True), (m.torch(), False)):
        found = judge(CHECK, torch_live=live, torch_build=build).worst
        assert ("HSA_OVERRIDE_GFX_VERSION" in found.hint) is said


@pytest.mark.parametrize(
    ("licensed", "error", "condition"),
    [
        pytest.param(None, "CUDA error: out of memory", NAME, id="words that mean WSL in WSL only"),
        pytest.param(None, BUSY, "gpu-busy-exclusive-mode", id="words of a busy GPU"),
        pytest.param(False, BUSY, NAME, id="the same words, of a GPU without its license"),
    ],
)
def test_the_words_of_a_device(licensed: bool | None, error: str, condition: str) -> None:
    device = CudaDevice(
        index=0, name="NVIDIA A10-24Q", major=8, minor=6, ok=False, error=error, error_code=46
    )
    live = TorchLive(imported=ImportOutcome(ok=True), cuda_ok=True, devices=(device,))
    gpu = Gpu(index=0, name=device.name, licensed=licensed)
    unit = REGISTRY.find(NAME)
    assert unit is not None
    facts = snapshots.of([live, Gpus(gpus=(gpu,)), TorchBuild(version="2.6.0", cuda="12.4")])
    (found,) = (f for f in whole(facts, [unit], REGISTRY).findings if f.status is Status.FAIL)
    assert found.condition == condition
