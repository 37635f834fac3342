"""Rows of `memlock-low`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Environment, Gpu, Gpus, Hostfile, Network, RdmaPort, Resources
from dsdoctor.model.facts.launch import HostEntry
from dsdoctor.testing import judge
from dsdoctor_checks.nccl import memlock_low

NATIVE = Environment(variables={"DS_PIN_MEMORY_BACKEND": "native"})


@pytest.mark.parametrize(
    "variables",
    [
        pytest.param({}, id="no adapter and no native pinning"),
        pytest.param(
            {"NCCL_IB_HCA": "mlx5", "NCCL_IB_DISABLE": "1"},
            id="the adapters are named, but NCCL may not use them",
        ),
        pytest.param({"DS_PIN_MEMORY_BACKEND": "torch"}, id="torch pins the memory"),
    ],
)
def test_where_nothing_is_locked(variables: dict[str, str]) -> None:
    env = Environment(variables=variables)
    facts: dict[str, Any] = {"resources": machine(), "environment": env}
    assert judge(memlock_low.memory_can_be_locked, **facts).status == "skip"


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
        pytest.param(machine(), "fail", id="the limit is 8 MiB"),
        pytest.param(machine(limit_memlock=None), "ok", id="no limit"),
        pytest.param(machine(limit_memlock=8 << 30), "warn", id="the limit is 8 GiB"),
    ],
)
def test_rows(fact: Resources, expected: str) -> None:
    facts: dict[str, Any] = {"resources": fact, "environment": NATIVE}
    assert judge(memlock_low.memory_can_be_locked, **facts).status == expected


@pytest.mark.parametrize(
    ("state", "hosts", "expected"),
    [
        pytest.param("ACTIVE", 2, "fail", id="two nodes with an active port"),
        pytest.param("ACTIVE", 1, "skip", id="an active port that a single node does not use"),
        pytest.param("DOWN", 2, "skip", id="two nodes whose port is down"),
    ],
)
def test_rdma_between_nodes(state: str, hosts: int, expected: str) -> None:
    network = Network(rdma=(RdmaPort(device="mlx5_0", port=1, state=state),))
    entries = tuple(HostEntry(host=f"n{i}", slots=8, line=i + 1) for i in range(hosts))
    facts: dict[str, Any] = {
        "network": network,
        "hostfile": Hostfile(path="hosts", entries=entries),
    }
    check = memlock_low.memory_can_be_locked
    assert judge(check, resources=machine(), environment=Environment(), **facts).status == expected


WITHOUT_DIRECT = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}


@pytest.mark.parametrize(
    ("variables", "gpus", "state", "expected"),
    [
        pytest.param(WITHOUT_DIRECT, 2, "ACTIVE", "fail", id="InfiniBand is all that is left"),
        pytest.param({"NCCL_P2P_DISABLE": "1"}, 2, "ACTIVE", "skip", id="shared memory is left"),
        pytest.param(WITHOUT_DIRECT, 1, "ACTIVE", "skip", id="one GPU sends nothing"),
        pytest.param(WITHOUT_DIRECT, 2, "DOWN", "skip", id="the port is down"),
        pytest.param(
            {**WITHOUT_DIRECT, "NCCL_NET": "Socket"}, 2, "ACTIVE", "skip", id="sockets are chosen"
        ),
    ],
)
def test_rdma_within_a_node(
    variables: dict[str, str], gpus: int, state: str, expected: str
) -> None:
    found = judge(
        memlock_low.memory_can_be_locked,
        resources=machine(),
        environment=Environment(variables=variables),
        network=Network(rdma=(RdmaPort(device="mlx5_0", port=1, state=state),)),
        gpus=Gpus(gpus=tuple(Gpu(index=i) for i in range(gpus)), count=gpus),
    )
    assert found.status == expected
