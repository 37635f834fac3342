"""Rows of `gpu-busy`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, Gpus
from dsdoctor.model.facts.gpu import GpuProcess
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import gpu_busy


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (Gpu(index=0, memory_total_bytes=24 << 30, memory_used_bytes=int(0.1 * 2**30)), "ok"),
        (Gpu(index=0), "skip"),
        (
            Gpu(
                index=0,
                memory_total_bytes=24 << 30,
                memory_used_bytes=3 * 2**30,
                display_active=True,
            ),
            "ok",
        ),
        (Gpu(index=0, memory_total_bytes=24 << 30, memory_used_bytes=3 * 2**30), "warn"),
        (Gpu(index=0, memory_total_bytes=24 << 30, memory_used_bytes=23 * 2**30), "fail"),
        (
            Gpu(index=0, memory_total_bytes=24 << 30, memory_used_bytes=20 * 2**30, mig_mode=True),
            "ok",
        ),
        (
            Gpu(
                index=0,
                memory_total_bytes=24 << 30,
                memory_used_bytes=1 * 2**30,
                processes=(GpuProcess(pid=7, kind="compute", used_bytes=1 << 30),),
            ),
            "warn",
        ),
        (
            Gpu(
                index=0,
                memory_total_bytes=24 << 30,
                memory_used_bytes=1 * 2**30,
                processes=(
                    GpuProcess(pid=7, kind="compute", used_bytes=1 << 30),
                    GpuProcess(pid=7, kind="graphics", used_bytes=1 << 30),
                ),
            ),
            "ok",
        ),
        (
            Gpu(
                index=0,
                memory_total_bytes=24 << 30,
                memory_used_bytes=int(0.1 * 2**30),
                processes=(GpuProcess(pid=7, kind="compute", used_bytes=None),),
            ),
            "ok",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert judge(gpu_busy.gpus_are_free, gpus=Gpus(gpus=(fact,))).status == expected
