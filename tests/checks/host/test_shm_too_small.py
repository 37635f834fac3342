"""Rows of `shm-too-small`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor.api import Gpu, Gpus, OsInfo, Resources, Scope
from dsdoctor.testing import judge
from dsdoctor_checks.host import shm_too_small

OS = OsInfo(system="Linux", release="6", machine="x86_64", hostname="n", container="docker")
GPUS = Gpus(gpus=(Gpu(index=0), Gpu(index=1)))
LIMITS = shm_too_small.ShmLimits()


def test_one_rank_gets_a_warning() -> None:
    facts: dict[str, Any] = {"resources": machine(shm_total_bytes=64 << 20), "os_info": OS}
    assert judge(shm_too_small.shm_is_large, **facts).status == "warn"


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
        pytest.param(machine(), "ok", id="32 GiB of shared memory"),
        pytest.param(machine(shm_total_bytes=None), "skip", id="a system without /dev/shm"),
        pytest.param(machine(shm_total_bytes=512 << 20), "ok", id="512 MiB for two GPUs"),
        pytest.param(machine(shm_total_bytes=256 << 20), "warn", id="256 MiB for two GPUs"),
        pytest.param(
            machine(shm_total_bytes=64 << 20),
            "fail",
            id="64 MiB for two GPUs, the default of Docker",
        ),
    ],
)
def test_rows(fact: Resources, expected: str) -> None:
    assert (
        judge(shm_too_small.shm_is_large, resources=fact, os_info=OS, gpus=GPUS).status == expected
    )


@pytest.mark.parametrize(
    ("container", "scope"),
    [
        pytest.param(None, Scope.NODE, id="of-the-host"),
        pytest.param("docker", Scope.JOB, id="of-a-container"),
        pytest.param("kubernetes", Scope.JOB, id="of-a-pod"),
    ],
)
def test_a_container_gets_its_size_from_who_starts_it(container: str | None, scope: Scope) -> None:
    """Another node would not help, so a gate must not blame this one."""
    os = msgspec.structs.replace(OS, container=container)
    facts: dict[str, Any] = {"resources": machine(shm_total_bytes=64 << 20), "os_info": os}
    assert judge(shm_too_small.shm_is_large, **facts, gpus=GPUS).findings[0].scope is scope


def test_many_ranks_share_it() -> None:
    sixteen = Gpus(gpus=tuple(Gpu(index=index) for index in range(16)))
    for size, expected in ((512, "warn"), (1024, "ok")):
        fact = machine(shm_total_bytes=size << 20)
        facts: dict[str, Any] = {"resources": fact, "os_info": OS, "gpus": sixteen}
        assert judge(shm_too_small.shm_is_large, **facts).status == expected
