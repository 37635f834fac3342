"""Rows of `stack-unlimited`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Gpu, Gpus, OsInfo, Resources, RunNeeds, TorchBuild
from dsdoctor_checks.host import stack_unlimited
from tests.checks.gpu.support import NOT_SET, worst

OS = OsInfo(system="Linux", release="6", machine="x86_64", hostname="n")
GPUS = Gpus(gpus=(Gpu(index=0), Gpu(index=1)))
OLD = TorchBuild(version="2.9.1", cuda="12.8", nccl="2.27.5")


@pytest.mark.parametrize(
    ("torch", "run"),
    [
        (TorchBuild(version="2.11.0", nccl="2.28.9"), RunNeeds()),
        (TorchBuild(version="2.13.0+cpu"), RunNeeds()),
        (OLD, RunNeeds(gpus=("0",))),
    ],
)
def test_where_it_does_no_harm(torch: TorchBuild, run: RunNeeds) -> None:
    facts = (machine(limit_stack=None), OS, torch, NOT_SET, run, GPUS, NOT_SET)
    assert worst(stack_unlimited.stack_is_limited, *facts) == "ok"


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
        (machine(), "ok"),
        (machine(limit_stack=None), "warn"),
    ],
)
def test_rows(fact: Resources, expected: str) -> None:
    assert (
        worst(stack_unlimited.stack_is_limited, fact, OS, OLD, NOT_SET, RunNeeds(), GPUS, NOT_SET)
        == expected
    )
