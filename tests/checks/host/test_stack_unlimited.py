"""Rows of `stack-unlimited`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Gpu, Gpus, OsInfo, Resources, RunNeeds, TorchBuild
from dsdoctor.testing import judge
from dsdoctor_checks.host import stack_unlimited

OS = OsInfo(system="Linux", release="6", machine="x86_64", hostname="n")
GPUS = Gpus(gpus=(Gpu(index=0), Gpu(index=1)))
OLD = TorchBuild(version="2.9.1", cuda="12.8", nccl="2.27.5")


@pytest.mark.parametrize(
    ("torch", "run", "status"),
    [
        pytest.param(
            TorchBuild(version="2.11.0", nccl="2.28.9"),
            RunNeeds(),
            "ok",
            id="an NCCL release in which it is repaired",
        ),
        pytest.param(
            TorchBuild(version="2.13.0+cpu"),
            RunNeeds(),
            "skip",
            id="a torch build for CPUs without NCCL",
        ),
        pytest.param(OLD, RunNeeds(gpus=("0",)), "skip", id="one GPU does not use NCCL"),
    ],
)
def test_where_it_does_no_harm(torch: TorchBuild, run: RunNeeds, status: str) -> None:
    facts: dict[str, Any] = {
        "resources": machine(limit_stack=None),
        "os_info": OS,
        "torch_build": torch,
        "run_needs": run,
        "gpus": GPUS,
    }
    assert judge(stack_unlimited.stack_is_limited, **facts).status == status


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
        pytest.param(machine(), "ok", id="a stack of 8 MiB"),
        pytest.param(
            machine(limit_stack=None),
            "warn",
            id="an unlimited stack with an older NCCL on two GPUs",
        ),
    ],
)
def test_rows(fact: Resources, expected: str) -> None:
    assert (
        judge(
            stack_unlimited.stack_is_limited, resources=fact, os_info=OS, torch_build=OLD, gpus=GPUS
        ).status
        == expected
    )
