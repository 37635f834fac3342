from __future__ import annotations

import pytest

from dsdoctor.api import NvidiaKernel, RunNeeds
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
    assert m.words(CHECK(*facts)) == expected
