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
        pytest.param(
            Gpu(index=0, compute_mode=0, processes=()),
            "ok",
            id="a GPU in the default mode without processes",
        ),
        pytest.param(
            Gpu(index=0, compute_mode=3, processes=()),
            "ok",
            id="a GPU in exclusive mode without processes",
        ),
        pytest.param(
            Gpu(index=0, compute_mode=9, processes=()),
            "ok",
            id="a compute mode that is not known yet",
        ),
        pytest.param(Gpu(index=0), "skip", id="the GPU does not report its compute mode"),
        pytest.param(
            Gpu(index=0, compute_mode=2, processes=()),
            "fail",
            id="the compute mode prohibits every process",
        ),
        pytest.param(
            Gpu(
                index=0,
                compute_mode=3,
                processes=(GpuProcess(pid=7, kind="compute", used_bytes=5),),
            ),
            "fail",
            id="another process has taken the GPU in exclusive mode",
        ),
        pytest.param(
            Gpu(
                index=0,
                compute_mode=3,
                processes=(GpuProcess(pid=7, kind="graphics", used_bytes=5),),
            ),
            "ok",
            id="a graphics process does not take a GPU in exclusive mode",
        ),
        pytest.param(
            Gpu(
                index=0,
                compute_mode=0,
                processes=(GpuProcess(pid=7, kind="compute", used_bytes=5),),
            ),
            "ok",
            id="a compute process shares the GPU in the default mode",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert (
        judge(gpu_busy_exclusive_mode.mode_lets_the_job_in, gpus=Gpus(gpus=(fact,))).status
        == expected
    )
