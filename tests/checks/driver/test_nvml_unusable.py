from __future__ import annotations

import pytest

from dsdoctor.api import CudaDevice, Gpus, Nvml, NvmlError, TorchBuild
from dsdoctor_checks.driver import nvml_unusable
from tests.checks import machines as m

CHECK = nvml_unusable.nvml_answers.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((m.nvml(), m.gpus("A100"), m.kernel(), m.LINUX, m.NO_ENV, m.ABSENT, m.ANY), []),
        ((m.TIMEOUT, m.ABSENT, m.kernel(), m.LINUX, m.NO_ENV, m.ABSENT, m.ANY), ["fail"]),
        ((m.ABSENT, m.ABSENT, m.kernel(), m.LINUX, m.NO_ENV, m.ABSENT, m.ANY), ["skip"]),
        (
            (
                Nvml(error=NvmlError(code=4, name="X", message="x", call="nvmlInit")),
                m.ABSENT,
                m.kernel(),
                m.LINUX,
                m.NO_ENV,
                m.ABSENT,
                m.ANY,
            ),
            ["fail"],
        ),
        (
            (
                Nvml(error=NvmlError(code=18, name="X", message="x", call="nvmlInit")),
                m.ABSENT,
                m.kernel(),
                m.LINUX,
                m.NO_ENV,
                m.ABSENT,
                m.ANY,
            ),
            [],
        ),
        (
            (
                Nvml(error=NvmlError(code=12, name="X", message="x", call="nvmlInit")),
                m.ABSENT,
                m.NO_GPU,
                m.LINUX,
                m.NO_ENV,
                m.ABSENT,
                m.ANY,
            ),
            ["skip"],
        ),
        (
            (
                Nvml(error=NvmlError(code=9, name="X", message="x", call="nvmlInit")),
                m.ABSENT,
                m.NO_GPU,
                m.LINUX,
                m.NO_ENV,
                m.ABSENT,
                m.ANY,
            ),
            ["skip"],
        ),
        (
            (
                Nvml(error=NvmlError(code=12, name="X", message="x", call="nvmlInit")),
                m.ABSENT,
                m.kernel(),
                m.DOCKER,
                m.NO_ENV,
                m.live(),
                m.ANY,
            ),
            ["warn"],
        ),
        (
            (
                Nvml(error=NvmlError(code=None, name="X", message="x", call="nvmlInit")),
                m.ABSENT,
                m.kernel(),
                m.LINUX,
                m.NO_ENV,
                m.ABSENT,
                m.ANY,
            ),
            ["skip"],
        ),
        (
            (
                m.nvml(),
                Gpus(count=8, stopped_at="gpu 3: nvmlDeviceGetName"),
                m.kernel(),
                m.LINUX,
                m.NO_ENV,
                m.ABSENT,
                m.ANY,
            ),
            ["fail"],
        ),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts, m.ABSENT, m.ABSENT, m.ABSENT)) == expected


LIBRARY_ABSENT = Nvml(
    error=NvmlError(code=12, name="LIBRARY_NOT_FOUND", message="x", call="nvmlInit")
)
ROCM = TorchBuild(version="2.9.1+rocm6.4", hip="6.4.43484")
MI300X = CudaDevice(index=0, name="AMD Instinct MI300X", major=9, minor=4, memory_bytes=192 << 30)


def test_rocm_devices_need_no_nvml() -> None:
    works = m.live(works=True, devices=(MI300X,))
    facts = (LIBRARY_ABSENT, m.ABSENT, m.NO_GPU, m.LINUX, m.NO_ENV, works, m.ANY)
    (finding,) = CHECK(*facts, ROCM, m.ABSENT, m.ABSENT)
    assert finding.status.value == "skip"
    assert finding.message == "DeepSpeed uses AMD ROCm here, not an NVIDIA GPU"
