"""Rows of `nccl-debug-switch-left`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Environment, Gpu, Gpus, LaunchCommand, NcclFiles, RunNeeds
from dsdoctor.probes.network import parse_settings
from dsdoctor_checks.nccl import nccl_debug_switch_left
from tests.checks.gpu.support import NOT_SET, bad, worst


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
            NOT_SET,
            NOT_SET,
        )
        == expected
    )


def test_where_it_costs_nothing() -> None:
    env = Environment(variables={"NCCL_P2P_DISABLE": "1"})
    for gpus in (machine("NVIDIA GeForce RTX 4090"), machine("NVIDIA H200", 1)):
        facts = (env, RunNeeds(), gpus, NOT_SET, NOT_SET)
        assert worst(nccl_debug_switch_left.nothing_is_turned_off, *facts) == "ok"


def test_a_switch_in_a_file_or_in_front_of_the_command() -> None:
    files = NcclFiles(files=(parse_settings("NCCL_P2P_DISABLE=1\n", "/etc/nccl.conf"),))
    command = LaunchCommand(env={"NCCL_SHM_DISABLE": "1"})
    check = nccl_debug_switch_left.nothing_is_turned_off
    (finding,) = bad(check, Environment(), RunNeeds(), machine("NVIDIA H200"), files, command)
    assert "line 1 of `/etc/nccl.conf`" in finding.message
    assert "`unset NCCL_SHM_DISABLE` and take line 1 out" in finding.hint


def test_the_environment_wins_over_a_file() -> None:
    files = NcclFiles(files=(parse_settings("NCCL_P2P_DISABLE=1\n", "/etc/nccl.conf"),))
    env = Environment(variables={"NCCL_P2P_DISABLE": "0"})
    check = nccl_debug_switch_left.nothing_is_turned_off
    assert worst(check, env, RunNeeds(), machine("NVIDIA H200"), files, NOT_SET) == "ok"
