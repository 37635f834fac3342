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
        pytest.param(
            Gpu(index=0, memory_total_bytes=24 << 30, memory_used_bytes=int(0.1 * 2**30)),
            "ok",
            id="a 24 GiB card with 100 MiB in use",
        ),
        pytest.param(Gpu(index=0), "skip", id="the GPU does not report its memory"),
        pytest.param(
            Gpu(
                index=0,
                memory_total_bytes=24 << 30,
                memory_used_bytes=3 * 2**30,
                display_active=True,
            ),
            "ok",
            id="a desktop holds 3 GiB of the card that drives the screen",
        ),
        pytest.param(
            Gpu(index=0, memory_total_bytes=24 << 30, memory_used_bytes=3 * 2**30),
            "warn",
            id="3 GiB of a card without a screen are in use",
        ),
        pytest.param(
            Gpu(index=0, memory_total_bytes=24 << 30, memory_used_bytes=23 * 2**30),
            "fail",
            id="all but 1 GiB is in use",
        ),
        pytest.param(
            Gpu(index=0, memory_total_bytes=24 << 30, memory_used_bytes=20 * 2**30, mig_mode=True),
            "ok",
            id="the memory of a GPU split by MIG is counted for each slice",
        ),
        pytest.param(
            Gpu(
                index=0,
                memory_total_bytes=24 << 30,
                memory_used_bytes=1 * 2**30,
                processes=(GpuProcess(pid=7, kind="compute", used_bytes=1 << 30),),
            ),
            "warn",
            id="a compute process holds 1 GiB",
        ),
        pytest.param(
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
            id="the process with 1 GiB draws to the screen as well",
        ),
        pytest.param(
            Gpu(
                index=0,
                memory_total_bytes=24 << 30,
                memory_used_bytes=int(0.1 * 2**30),
                processes=(GpuProcess(pid=7, kind="compute", used_bytes=None),),
            ),
            "ok",
            id="an idle compute process whose memory is unknown",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert judge(gpu_busy.gpus_are_free, gpus=Gpus(gpus=(fact,))).status == expected


@pytest.mark.parametrize(
    ("processes", "words"),
    [
        pytest.param((), "fuser -v /dev/nvidia*", id="nvidia-smi lists none"),
        pytest.param(
            (GpuProcess(pid=7, kind="compute", used_bytes=9 << 30),),
            "stop the programs",
            id="nvidia-smi lists one",
        ),
    ],
)
def test_the_hint_finds_who_holds_the_memory(processes: tuple[GpuProcess, ...], words: str) -> None:
    gpu = Gpu(
        index=6,
        memory_used_bytes=10 << 30,
        memory_total_bytes=80 << 30,
        processes=processes,
    )
    assert words in judge(gpu_busy.gpus_are_free, gpus=Gpus(gpus=(gpu,))).findings[0].hint
