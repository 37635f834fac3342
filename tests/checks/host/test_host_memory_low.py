"""Rows of `host-memory-low`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Gpu, Gpus, ImportOutcome, MemoryDetail, Resources, TorchLive
from dsdoctor.testing import assert_fail, assert_warn, judge
from dsdoctor_checks.host import host_memory_low

GPUS = Gpus(gpus=tuple(Gpu(index=index) for index in range(4)))


def machine(**changes: Any) -> Resources:
    usual: dict[str, Any] = {
        "cpus_logical": 8,
        "cpus_usable": 8,
        "memory_total_bytes": 64 << 30,
        "memory_available_bytes": 48 << 30,
        "shm_total_bytes": 32 << 30,
        "limit_nofile": 1024,
        "limit_stack": 8 << 20,
        "limit_memlock": 8 << 20,
    }
    return Resources(**{**usual, **changes})


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(machine(), "ok", id="48 of 64 GiB are free for four GPUs"),
        pytest.param(
            machine(memory_available_bytes=4 << 30), "warn", id="4 GiB are free for four GPUs"
        ),
        pytest.param(
            machine(memory_available_bytes=1 << 29), "fail", id="512 MiB are free for four GPUs"
        ),
        pytest.param(
            machine(memory_limit_bytes=32 << 30, memory_available_bytes=16 << 30),
            "ok",
            id="half of the container's 32 GiB is free",
        ),
    ],
)
def test_rows(fact: Resources, expected: str) -> None:
    assert judge(host_memory_low.memory_is_free, resources=fact, gpus=GPUS).status == expected


def test_stale_segments_are_named_as_the_way_out() -> None:
    detail = MemoryDetail(shm_left={"/dev/shm/deepspeed_allreduce_buffer_0_0": 23 << 30})
    judged = judge(
        host_memory_low.memory_is_free,
        resources=machine(memory_available_bytes=3 << 29),
        memory_detail=detail,
    )
    assert_warn(judged)
    assert "23.0 GiB of stale segments" in judged.findings[0].hint


def test_an_import_that_the_kernel_killed_makes_it_a_failure() -> None:
    dead = ImportOutcome(ok=False, error_type="signal", message="SIGKILL", signal=9)
    judged = judge(
        host_memory_low.memory_is_free,
        resources=machine(memory_available_bytes=3 << 29),
        torch_live=TorchLive(imported=dead),
    )
    assert_fail(judged, "the kernel killed `import torch`")
