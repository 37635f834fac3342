"""Rows of `gpu-busy-exclusive-mode`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import CudaDevice, Environment, Gpu, Gpus, ImportOutcome, TorchLive
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


SERVER = GpuProcess(pid=7, kind="compute", used_bytes=5)
CLIENT = GpuProcess(pid=8, kind="mps", used_bytes=5)


def _live(*, ok: bool) -> TorchLive:
    device = CudaDevice(index=0, name="V100", major=7, minor=0, ok=ok)
    return TorchLive(imported=ImportOutcome(ok=True), cuda_ok=True, devices=(device,))


@pytest.mark.parametrize(
    ("processes", "facts", "expected"),
    [
        pytest.param(
            (SERVER,), {"environment": Environment(variables={"CUDA_MPS_PIPE_DIRECTORY": "/x"})},
            "ok", id="the job is to use the server of MPS",
        ),
        pytest.param((SERVER, CLIENT), {}, "ok", id="clients of MPS use it"),
        pytest.param((SERVER,), {"torch_live": _live(ok=True)}, "ok", id="torch has used it"),
        pytest.param((SERVER,), {"torch_live": _live(ok=False)}, "fail", id="torch could not"),
    ],
)  # fmt: skip
def test_the_server_of_mps_lets_others_in(
    processes: tuple[GpuProcess, ...], facts: dict[str, Any], expected: str
) -> None:
    """MPS asks for exclusive mode, so that nothing uses the GPU but its server."""
    gpus = Gpus(gpus=(Gpu(index=0, compute_mode=3, processes=processes),))
    check = gpu_busy_exclusive_mode.mode_lets_the_job_in
    assert judge(check, gpus=gpus, **facts).status == expected


@pytest.mark.parametrize(
    ("used", "more", "expected"),
    [
        pytest.param(1092, {}, "warn", id="a process of another container"),
        pytest.param(450, {}, "ok", id="what the driver keeps"),
        pytest.param(1092, {"memory_reserved_bytes": 600 << 20}, "ok", id="its reserve is large"),
        pytest.param(1092, {"display_active": True}, "ok", id="a display"),
        pytest.param(1092, {"compute_mode": 0}, "ok", id="the default mode"),
    ],
)
def test_memory_in_use_shows_a_process_that_is_hidden(
    used: int, more: dict[str, Any], expected: str
) -> None:
    fields = {"index": 0, "compute_mode": 3, "processes": (), "memory_used_bytes": used << 20}
    gpu = Gpu(**{**fields, **more})
    judged = judge(gpu_busy_exclusive_mode.mode_lets_the_job_in, gpus=Gpus(gpus=(gpu,)))
    assert judged.status == expected
