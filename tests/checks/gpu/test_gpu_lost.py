"""Rows of `gpu-lost`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor import packs
from dsdoctor.api import (
    Environment,
    FallenGpus,
    Gpu,
    Gpus,
    NvidiaKernel,
    Nvml,
    NvmlError,
    OsInfo,
    PciGpu,
    TorchLive,
)
from dsdoctor.judge import judge as report_of
from dsdoctor.model import snapshot
from dsdoctor.model.facts.python import ImportOutcome
from dsdoctor.model.finding import Status
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import gpu_lost

REGISTRY = packs.load()


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(Gpu(index=0, uuid="GPU-1"), "ok", id="a GPU that answers"),
        pytest.param(
            Gpu(
                index=0,
                error=NvmlError(code=15, name="GPU_IS_LOST", message="m", call="nvmlDeviceGetName"),
            ),
            "fail",
            id="the driver has lost the GPU",
        ),
        pytest.param(
            Gpu(
                index=0,
                error=NvmlError(code=999, name="UNKNOWN", message="m", call="nvmlDeviceGetName"),
            ),
            "fail",
            id="the GPU answers with an unknown error",
        ),
        pytest.param(
            Gpu(
                index=0,
                error=NvmlError(
                    code=16, name="RESET_REQUIRED", message="m", call="nvmlDeviceGetName"
                ),
            ),
            "ok",
            id="the GPU needs a reset, which another check reports",
        ),
        pytest.param(
            Gpu(
                index=0,
                error=NvmlError(
                    code=4, name="NO_PERMISSION", message="m", call="nvmlDeviceGetName"
                ),
            ),
            "skip",
            id="the GPU may not be asked",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert judge(gpu_lost.gpus_answer, gpus=Gpus(gpus=(fact,))).status == expected


def test_a_lost_gpu_explains_that_cuda_does_not_initialize() -> None:
    lost = NvmlError(code=15, name="GPU_IS_LOST", message="m", call="nvmlDeviceGetName")
    live = TorchLive(imported=ImportOutcome(ok=True), cuda_ok=False, cuda_error_code=999)
    report = report_of(
        snapshot.of([Gpus(gpus=(Gpu(index=0, error=lost),), count=1), Nvml(), live]),
        list(REGISTRY),
        REGISTRY,
    )
    failed = {found.condition for found in report.findings if found.status is Status.FAIL}
    assert failed == {"gpu-lost"}


def machine(**more: Any) -> OsInfo:
    return OsInfo(system="Linux", release="6.8.0", machine="x86_64", hostname="gpu-17", **more)


def pci(number: int, driver: str | None, kind: str = "0x26b5") -> PciGpu:
    return PciGpu(bdf=f"0000:{number:02x}:00.0", device_id=kind, driver=driver)


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        pytest.param((pci(1, "nvidia"), pci(2, None)), "warn", id="one of two left on the bus"),
        pytest.param((pci(1, "nvidia"), pci(2, "nvidia")), "ok", id="both taken"),
        pytest.param((pci(1, "nvidia"), pci(2, "vfio-pci")), "ok", id="given to a machine"),
        pytest.param((pci(1, "nvidia"), pci(2, None, "0x128b")), "ok", id="another type"),
        pytest.param((pci(1, None), pci(2, None)), "ok", id="no driver at all"),
    ],
)
def test_a_gpu_that_the_driver_left_on_the_bus(gpus: tuple[PciGpu, ...], expected: str) -> None:
    seen = Gpus(gpus=(Gpu(index=0, uuid="GPU-1"),), count=1)
    found = judge(gpu_lost.gpus_answer, gpus=seen, nvidia_kernel=NvidiaKernel(pci=gpus))
    assert found.status == expected


@pytest.mark.parametrize(
    ("fallen", "expected"),
    [
        pytest.param(("0000:02:00.0",), "fail", id="it fell off the bus before the driver took it"),
        pytest.param(("0000:09:00.0",), "warn", id="another one fell"),
        pytest.param((), "warn", id="the log has no reason"),
    ],
)
def test_the_kernel_log_tells_why_a_gpu_was_left(fallen: tuple[str, ...], expected: str) -> None:
    found = judge(
        gpu_lost.gpus_answer,
        gpus=Gpus(gpus=(Gpu(index=0, uuid="GPU-1"),), count=1),
        nvidia_kernel=NvidiaKernel(pci=(pci(1, "nvidia"), pci(2, None))),
        fallen_gpus=FallenGpus(bdfs=fallen),
    )
    assert found.status == expected


def test_a_gpu_that_fell_once_and_is_back_is_no_fault() -> None:
    found = judge(
        gpu_lost.gpus_answer,
        gpus=Gpus(gpus=(Gpu(index=0, uuid="GPU-1"),), count=1),
        nvidia_kernel=NvidiaKernel(pci=(pci(1, "nvidia"), pci(2, "nvidia"))),
        fallen_gpus=FallenGpus(bdfs=("0000:02:00.0",)),
    )
    assert found.status == "ok"


@pytest.mark.parametrize(
    ("listed", "os", "env", "expected"),
    [
        pytest.param(
            ("0000:01:00.0",), machine(), Environment(), "fail", id="one of two is not listed"
        ),
        pytest.param((), machine(), Environment(), "fail", id="the only ones"),
        pytest.param(
            ("0000:01:00.0", "0000:02:00.0"), machine(), Environment(), "ok", id="it is back since"
        ),
        pytest.param(
            ("0000:01:00.0",),
            machine(container="docker"),
            Environment(),
            "ok",
            id="of another container",
        ),
        pytest.param(
            ("0000:01:00.0",),
            machine(),
            Environment(variables={"SLURM_JOB_ID": "77"}),
            "ok",
            id="of another job",
        ),
    ],
)
def test_a_gpu_that_the_driver_could_not_initialize(
    listed: tuple[str, ...], os: OsInfo, env: Environment, expected: str
) -> None:
    found = judge(
        gpu_lost.gpus_answer,
        gpus=Gpus(
            gpus=tuple(Gpu(index=n, uuid=f"GPU-{n}", pci_bdf=bdf) for n, bdf in enumerate(listed)),
            count=len(listed),
        ),
        nvidia_kernel=NvidiaKernel(pci=(pci(1, "nvidia"), pci(2, "nvidia"))),
        fallen_gpus=FallenGpus(not_started=("0000:02:00.0",)),
        os_info=os,
        environment=env,
    )
    assert found.status == expected


def test_a_gpu_that_does_not_answer_is_reported_once() -> None:
    mute = NvmlError(code=999, name="UNKNOWN", message="m", call="nvmlDeviceGetHandleByIndex")
    report = report_of(
        snapshot.of(
            [
                Gpus(gpus=(Gpu(index=0, error=mute),), count=1),
                NvidiaKernel(pci=(pci(2, "nvidia"),)),
                FallenGpus(not_started=("0000:02:00.0",)),
                machine(),
                Nvml(),
            ]
        ),
        list(REGISTRY),
        REGISTRY,
    )
    assert [found.condition for found in report.findings if found.status is Status.FAIL] == [
        "gpu-lost"
    ]
