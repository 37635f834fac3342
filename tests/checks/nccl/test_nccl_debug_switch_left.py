"""Rows of `nccl-debug-switch-left`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Environment, Gpu, Gpus, LaunchCommand, NcclFiles
from dsdoctor.model.facts.gpu import GpuLink
from dsdoctor.probes.network import parse_settings
from dsdoctor.testing import judge
from dsdoctor_checks.nccl import nccl_debug_switch_left


def machine(name: str, count: int = 2) -> Gpus:
    return Gpus(gpus=tuple(Gpu(index=index, name=name) for index in range(count)))


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param({}, "ok", id="no switch is set"),
        pytest.param(
            {"NCCL_DEBUG": "WARN", "NCCL_P2P_DISABLE": "0", "NCCL_NVLS_ENABLE": "2"},
            "ok",
            id="log level, and switches at values that disable nothing",
        ),
        pytest.param({"NCCL_P2P_DISABLE": "1"}, "warn", id="peer-to-peer transport is disabled"),
        pytest.param({"NCCL_P2P_LEVEL": "LOC"}, "warn", id="peer-to-peer transport at no distance"),
        pytest.param({"NCCL_P2P_LEVEL": "0"}, "warn", id="the same as a number"),
        pytest.param({"NCCL_P2P_LEVEL": "NVL"}, "ok", id="peer-to-peer transport over NVLink only"),
        pytest.param(
            {"NCCL_IB_DISABLE": "1", "NCCL_SHM_DISABLE": "1"},
            "warn",
            id="InfiniBand and shared memory are disabled",
        ),
    ],
)
def test_rows(fact: dict[str, str], expected: str) -> None:
    assert (
        judge(
            nccl_debug_switch_left.nothing_is_disabled,
            environment=Environment(variables=fact),
            gpus=machine("NVIDIA H200"),
        ).status
        == expected
    )


def test_where_it_costs_nothing() -> None:
    env = Environment(variables={"NCCL_P2P_DISABLE": "1"})
    for gpus in (machine("NVIDIA GeForce RTX 4090"), machine("NVIDIA H200", 1)):
        facts: dict[str, Any] = {"environment": env, "gpus": gpus}
        assert judge(nccl_debug_switch_left.nothing_is_disabled, **facts).status == "ok"


@pytest.mark.parametrize(
    ("name", "links", "expected"),
    [
        pytest.param("NVIDIA GeForce RTX 3090", (0, 0, 0, 0), "ok", id="without a bridge"),
        pytest.param("NVIDIA GeForce RTX 3090", (1, 1, 1, 1), "warn", id="with a bridge"),
        pytest.param("NVIDIA GeForce RTX 3090", None, "warn", id="nothing is known of a bridge"),
        pytest.param("NVIDIA GeForce RTX 2080 Ti", (), "ok", id="an older card"),
        pytest.param("NVIDIA RTX A6000", (0, 0, 0, 0), "warn", id="a card with peer access"),
    ],
)
def test_cards_whose_peer_access_needs_a_bridge(
    name: str, links: tuple[int, ...] | None, expected: str
) -> None:
    states = None if links is None else tuple(GpuLink(link=n, state=s) for n, s in enumerate(links))
    gpus = Gpus(gpus=tuple(Gpu(index=n, name=name, links=states) for n in range(2)))
    env = Environment(variables={"NCCL_P2P_DISABLE": "1"})
    facts: dict[str, Any] = {"environment": env, "gpus": gpus}
    assert judge(nccl_debug_switch_left.nothing_is_disabled, **facts).status == expected


def test_a_switch_in_a_file_or_in_front_of_the_command() -> None:
    files = NcclFiles(files=(parse_settings("NCCL_P2P_DISABLE=1\n", "/etc/nccl.conf"),))
    command = LaunchCommand(env={"NCCL_SHM_DISABLE": "1"})
    check = nccl_debug_switch_left.nothing_is_disabled
    (finding,) = judge(
        check,
        environment=Environment(),
        gpus=machine("NVIDIA H200"),
        nccl_files=files,
        launch_command=command,
    ).bad
    assert "line 1 of `/etc/nccl.conf`" in finding.message
    assert finding.hint == (
        "remove line 1 from `/etc/nccl.conf` and remove `NCCL_SHM_DISABLE=1` from the command"
    )
    assert finding.fixes == ()


def test_the_fix_is_offered_for_the_environment() -> None:
    (finding,) = judge(
        nccl_debug_switch_left.nothing_is_disabled,
        environment=Environment(variables={"NCCL_SHM_DISABLE": "1"}),
        gpus=machine("NVIDIA H200"),
    ).bad
    assert finding.hint == "run `unset NCCL_SHM_DISABLE`"
    assert finding.fixes == ("unset-variables",)


def test_the_environment_wins_over_a_file() -> None:
    files = NcclFiles(files=(parse_settings("NCCL_P2P_DISABLE=1\n", "/etc/nccl.conf"),))
    env = Environment(variables={"NCCL_P2P_DISABLE": "0"})
    check = nccl_debug_switch_left.nothing_is_disabled
    assert (
        judge(check, environment=env, gpus=machine("NVIDIA H200"), nccl_files=files).status == "ok"
    )
