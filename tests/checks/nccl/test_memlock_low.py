"""Rows of `memlock-low`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Environment, Resources
from dsdoctor_checks.nccl import memlock_low
from tests.checks.gpu.support import worst

NATIVE = Environment(variables={"DS_PIN_MEMORY_BACKEND": "native"})


@pytest.mark.parametrize(
    "variables",
    [{}, {"NCCL_IB_HCA": "mlx5", "NCCL_IB_DISABLE": "1"}, {"DS_PIN_MEMORY_BACKEND": "torch"}],
)
def test_where_nothing_is_locked(variables: dict[str, str]) -> None:
    env = Environment(variables=variables)
    facts = (machine(), env, memlock_low.MemlockLimits())
    assert worst(memlock_low.memory_can_be_locked, *facts) == "ok"


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
        (machine(), "fail"),
        (machine(limit_memlock=None), "ok"),
        (machine(limit_memlock=8 << 30), "warn"),
    ],
)
def test_rows(fact: Resources, expected: str) -> None:
    assert (
        worst(memlock_low.memory_can_be_locked, fact, NATIVE, memlock_low.MemlockLimits())
        == expected
    )
