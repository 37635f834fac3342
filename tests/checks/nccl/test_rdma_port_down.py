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
        (Network(), {}, "skip"),
        (node(), {}, "ok"),
        (node(DOWN), {}, "warn"),
        (node(DOWN), {"NCCL_IB_DISABLE": "1"}, "skip"),
        (node({"state": "DOWN", "phys_state": "Disabled"}), {}, "ok"),
        (node(DOWN, count=2), {}, "ok"),  # the second port of a card
        (node(DOWN, DOWN, DOWN, DOWN), {}, "ok"),  # half of them: a plan
        (node(DOWN, link_layer="Ethernet"), {}, "ok"),
        (node(DOWN, count=2), {"NCCL_IB_HCA": "mlx5"}, "warn"),
        (node(DOWN, count=1), {"NCCL_IB_HCA": "mlx5"}, "fail"),
        (node({"state": "INIT"}), {}, "fail"),
        (node({"rate_gbps": 200.0}), {}, "warn"),
        (node({"rate_gbps": 200.0, "kind": "MT4123"}), {}, "ok"),
    ],
)
def test_rows(network: Network, variables: dict[str, str], expected: str) -> None:
    env = Environment(variables=variables)
    assert judge(CHECK, network=network, environment=env, hostfile=TWO).status == expected


def test_a_run_on_one_node_needs_none() -> None:
    assert judge(CHECK, network=node(DOWN), environment=Environment()).status == "skip"
    slurm = Environment(variables={"SLURM_NNODES": "2"})
    assert judge(CHECK, network=node(DOWN), environment=slurm).status == "warn"
