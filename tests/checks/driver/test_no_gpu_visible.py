from __future__ import annotations

import pytest

from dsdoctor.api import (
    DeepSpeedLive,
    ImportOutcome,
    Missing,
    NvidiaKernel,
    OsInfo,
    Package,
    Packages,
    RunNeeds,
    TorchBuild,
)
from dsdoctor_checks.driver import no_gpu_visible
from tests.checks import machines as m

CHECK = no_gpu_visible.some_gpu_visible.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((m.gpus("A100"), m.kernel(), m.NO_ENV, m.LINUX, m.live(), m.ANY), []),
        ((m.ABSENT, m.NO_GPU, m.NO_ENV, m.LINUX, m.ABSENT, m.ANY), ["warn"]),
        ((m.ABSENT, m.NO_GPU, m.NO_ENV, m.LINUX, m.ABSENT, m.WANTS), ["fail"]),
        ((m.ABSENT, m.NO_GPU, m.NO_ENV, m.LINUX, m.ABSENT, RunNeeds(expect_gpus=8)), ["fail"]),
        ((m.ABSENT, m.kernel(None, None), m.NO_ENV, m.LINUX, m.ABSENT, m.ANY), ["fail"]),
        ((m.ABSENT, m.kernel(None, "vfio-pci"), m.NO_ENV, m.LINUX, m.ABSENT, m.ANY), ["warn"]),
        (
            (
                m.ABSENT,
                NvidiaKernel(module_version="580.95.05", pci=m.kernel().pci),
                m.NO_ENV,
                m.DOCKER,
                m.ABSENT,
                m.ANY,
            ),
            ["warn"],
        ),
        ((m.ABSENT, m.kernel(), m.env(SLURM_JOB_ID="1"), m.LINUX, m.ABSENT, m.WANTS), ["fail"]),
        (
            (m.gpus("A100"), m.kernel(), m.env(CUDA_VISIBLE_DEVICES=""), m.LINUX, m.ABSENT, m.ANY),
            ["warn"],
        ),
        (
            (
                m.gpus("A100"),
                m.kernel(),
                m.env(CUDA_VISIBLE_DEVICES="-1"),
                m.LINUX,
                m.ABSENT,
                m.WANTS,
            ),
            ["fail"],
        ),
        ((m.TIMEOUT, m.kernel(), m.NO_ENV, m.LINUX, m.ABSENT, m.ANY), ["skip"]),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts, m.ABSENT, m.ABSENT, m.ABSENT)) == expected


MACOS = OsInfo(system="Darwin", release="24.6.0", machine="arm64", hostname="mac")


@pytest.mark.parametrize(
    ("os", "torch", "deepspeed", "packages", "named"),
    [
        (m.LINUX, m.ABSENT, "npu", {}, "Ascend NPU (`npu`)"),
        (m.LINUX, m.ABSENT, "mps", {}, "Apple MPS (`mps`)"),
        (MACOS, m.ABSENT, None, {}, "Apple MPS or the CPU"),
        (
            m.LINUX,
            m.ABSENT,
            None,
            {"torch-npu": Package(name="torch-npu", version="2.9.0")},
            "Ascend NPU (`npu`)",
        ),
        (m.LINUX, TorchBuild(version="2.9.1", hip="6.4"), None, {}, "AMD ROCm"),
    ],
)
def test_another_accelerator_is_not_called_the_cpu(
    os: OsInfo,
    torch: TorchBuild | Missing,
    deepspeed: str | None,
    packages: dict[str, Package],
    named: str,
) -> None:
    chosen = DeepSpeedLive(imported=ImportOutcome(ok=True), accelerator=deepspeed)
    live = chosen if deepspeed else m.NOT_ASKED
    facts = (m.ABSENT, m.NO_GPU, m.NO_ENV, os, m.NOT_ASKED, m.ANY, torch, live)
    (finding,) = CHECK(*facts, Packages(packages=packages))
    assert finding.status.value == "skip"
    assert finding.message == f"DeepSpeed uses {named} here, not an NVIDIA GPU"
