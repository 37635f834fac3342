"""Rows of `gpu-busy-exclusive-mode`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, Gpus
from dsdoctor.model.facts.gpu import GpuProcess
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import gpu_busy_exclusive_mode


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (Gpu(index=0, compute_mode=0, processes=()), "ok"),
        (Gpu(index=0, compute_mode=3, processes=()), "ok"),
        (Gpu(index=0, compute_mode=9, processes=()), "ok"),
        (Gpu(index=0), "skip"),
        (Gpu(index=0, compute_mode=2, processes=()), "fail"),
        (
            Gpu(
                index=0,
                compute_mode=3,
                processes=(GpuProcess(pid=7, kind="compute", used_bytes=5),),
            ),
            "fail",
        ),
        (
            Gpu(
                index=0,
                compute_mode=3,
                processes=(GpuProcess(pid=7, kind="graphics", used_bytes=5),),
            ),
            "ok",
        ),
        (
            Gpu(
                index=0,
                compute_mode=0,
                processes=(GpuProcess(pid=7, kind="compute", used_bytes=5),),
            ),
            "ok",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert (
        judge(gpu_busy_exclusive_mode.mode_lets_the_job_in, gpus=Gpus(gpus=(fact,))).status
        == expected
    )
