"""Rows of `rdma-port-down`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Environment, Hostfile, Network, RdmaPort
from dsdoctor.model.facts.launch import HostEntry
from dsdoctor.testing import judge
from dsdoctor_checks.nccl import rdma_port_down

CHECK = rdma_port_down.ports_are_active
TWO = Hostfile(
    path="hosts",
    entries=(HostEntry(host="a", slots=8, line=1), HostEntry(host="b", slots=8, line=2)),
)


def port(index: int, **changes: Any) -> RdmaPort:
    usual: dict[str, Any] = {
        "device": f"mlx5_{index}",
        "port": 1,
        "state": "ACTIVE",
        "phys_state": "LinkUp",
        "link_layer": "InfiniBand",
        "rate_gbps": 400.0,
        "kind": "MT4129",
    }
    return RdmaPort(**{**usual, **changes})


def node(*changed: dict[str, Any], count: int = 8, **every: Any) -> Network:
    given = [*changed, *({} for _ in range(count - len(changed)))]
    return Network(rdma=tuple(port(i, **{**every, **more}) for i, more in enumerate(given)))


DOWN = {"state": "DOWN", "phys_state": "Polling"}


@pytest.mark.parametrize(
    ("network", "variables", "expected"),
    [
        pytest.param(Network(), {}, "skip", id="a node without adapters"),
        pytest.param(node(), {}, "ok", id="eight active ports"),
        pytest.param(node(DOWN), {}, "warn", id="one of eight equal ports has no link"),
        pytest.param(
            node(DOWN),
            {"NCCL_IB_DISABLE": "1"},
            "skip",
            id="one port has no link, but NCCL does not use the adapters",
        ),
        pytest.param(
            node({"state": "DOWN", "phys_state": "Disabled"}),
            {},
            "ok",
            id="one port was disabled on purpose",
        ),
        pytest.param(
            node(state="DOWN", phys_state="Disabled"), {}, "warn", id="every port is disabled"
        ),
        pytest.param(
            node(count=2, state="DOWN", phys_state="Disabled"), {}, "ok", id="an unused card"
        ),
        pytest.param(
            node(DOWN, count=2), {}, "ok", id="one of two ports, which may never have had a cable"
        ),  # the second port of a card
        pytest.param(
            node(DOWN, DOWN, DOWN, DOWN),
            {},
            "ok",
            id="half of the ports have no link, so they may have no cable",
        ),  # half of them: a plan
        pytest.param(
            node(DOWN, link_layer="Ethernet"), {}, "ok", id="an Ethernet port without a cable"
        ),
        pytest.param(
            node(DOWN, count=2),
            {"NCCL_IB_HCA": "mlx5"},
            "warn",
            id="NCCL_IB_HCA names the port without a link and another one",
        ),
        pytest.param(
            node(DOWN, count=1),
            {"NCCL_IB_HCA": "mlx5"},
            "fail",
            id="NCCL_IB_HCA names the only port, which has no link",
        ),
        pytest.param(node({"state": "INIT"}), {}, "fail", id="a port waits for the subnet manager"),
        pytest.param(
            node({"rate_gbps": 200.0}),
            {},
            "warn",
            id="one of eight equal ports runs at half the rate",
        ),
        pytest.param(
            node({"rate_gbps": 200.0, "kind": "MT4123"}),
            {},
            "ok",
            id="an adapter of an older kind runs at half the rate",
        ),
    ],
)
def test_rows(network: Network, variables: dict[str, str], expected: str) -> None:
    env = Environment(variables=variables)
    assert judge(CHECK, network=network, environment=env, hostfile=TWO).status == expected


def test_a_run_on_one_node_needs_none() -> None:
    assert judge(CHECK, network=node(DOWN), environment=Environment()).status == "skip"
    slurm = Environment(variables={"SLURM_NNODES": "2"})
    assert judge(CHECK, network=node(DOWN), environment=slurm).status == "warn"
