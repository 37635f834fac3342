"""Rows of `omp-threads-one-with-offload`."""

from __future__ import annotations

import pytest

from dsdoctor.api import DsConfig, Resources
from dsdoctor.testing import judge
from dsdoctor_checks.launch import omp_threads_one_with_offload as unit
from tests.checks.launch.rows import command, env

ROOM = Resources(
    cpus_logical=64, cpus_usable=64, memory_total_bytes=1 << 38, memory_available_bytes=1 << 37
)
LAPTOP = Resources(
    cpus_logical=4, cpus_usable=4, memory_total_bytes=1 << 34, memory_available_bytes=1 << 33
)


def offload(device: str) -> DsConfig:
    zero = {"stage": 2, "offload_optimizer": {"device": device}}
    return DsConfig(parsed={"zero_optimization": zero})


@pytest.mark.parametrize(
    ("device", "threads", "machine", "line", "status"),
    [
        pytest.param(
            "cpu",
            None,
            ROOM,
            "deepspeed --num_gpus 4 t.py",
            "ok",
            id="deepspeed sets the threads of its ranks",
        ),
        pytest.param(
            "cpu",
            "16",
            ROOM,
            "torchrun --nproc_per_node 4 t.py",
            "ok",
            id="16 threads for each of four ranks",
        ),
        pytest.param(
            "cpu",
            None,
            ROOM,
            "torchrun --nproc_per_node 1 t.py",
            "ok",
            id="torchrun does not limit a single rank",
        ),
        pytest.param(
            "none", "1", ROOM, "deepspeed t.py", "ok", id="one thread, but nothing is offloaded"
        ),
        pytest.param(
            "cpu",
            "1",
            LAPTOP,
            "deepspeed --num_gpus 2 t.py",
            "ok",
            id="one thread on a laptop with four cores",
        ),
        pytest.param(
            "cpu",
            "1",
            ROOM,
            "deepspeed --num_gpus 4 t.py",
            "warn",
            id="one thread on a server with 64 cores",
        ),
        pytest.param(
            "cpu",
            None,
            ROOM,
            "torchrun --nproc_per_node 4 t.py",
            "warn",
            id="torchrun limits each of four ranks to one thread",
        ),
    ],
)
def test_threads(
    device: str, threads: str | None, machine: Resources, line: str, status: str
) -> None:
    environment = env() if threads is None else env(OMP_NUM_THREADS=threads)
    judged = judge(
        unit.offload_has_threads,
        ds_config=offload(device),
        environment=environment,
        resources=machine,
        launch_command=command(line),
    )
    assert judged.statuses == status.split()
