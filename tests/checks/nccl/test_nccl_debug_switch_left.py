"""Rows of `nccl-debug-switch-left`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Environment, Gpu, Gpus, RunNeeds
from dsdoctor_checks.nccl import nccl_debug_switch_left
from tests.checks.gpu.support import worst


def machine(name: str, count: int = 2) -> Gpus:
    return Gpus(gpus=tuple(Gpu(index=index, name=name) for index in range(count)))


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        ({}, "ok"),
        ({"NCCL_DEBUG": "WARN", "NCCL_P2P_DISABLE": "0", "NCCL_NVLS_ENABLE": "2"}, "ok"),
        ({"NCCL_P2P_DISABLE": "1"}, "warn"),
        ({"NCCL_IB_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}, "warn"),
    ],
)
def test_rows(fact: dict[str, str], expected: str) -> None:
    assert (
        worst(
            nccl_debug_switch_left.nothing_is_turned_off,
            Environment(variables=fact),
            RunNeeds(),
            machine("NVIDIA H200"),
        )
        == expected
    )


def test_where_it_costs_nothing() -> None:
    env = Environment(variables={"NCCL_P2P_DISABLE": "1"})
    for gpus in (machine("NVIDIA GeForce RTX 4090"), machine("NVIDIA H200", 1)):
        facts = (env, RunNeeds(), gpus)
        assert worst(nccl_debug_switch_left.nothing_is_turned_off, *facts) == "ok"
