"""Rows of `gpudirect-rdma-missing`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor.api import Environment, NvidiaKernel
from dsdoctor_checks.nccl import gpudirect_rdma_missing
from tests.checks import machines
from tests.checks.gpu.support import NOT_SET, worst
from tests.checks.nccl.test_rdma_port_down import TWO, node

CHECK = gpudirect_rdma_missing.adapters_reach_gpus


def kernel(**changes: Any) -> NvidiaKernel:
    return msgspec.structs.replace(machines.kernel(), **changes)


@pytest.mark.parametrize(
    ("driver", "variables", "expected"),
    [
        (kernel(modules=("nvidia", "nvidia_peermem")), {}, "ok"),
        (kernel(modules=("nv_peer_mem", "nvidia")), {}, "ok"),
        (kernel(module_open=True), {}, "ok"),
        (kernel(module_open=False), {}, "warn"),
        (kernel(module_open=False), {"NCCL_IB_DISABLE": "1"}, "ok"),
        (kernel(module_open=True), {"NCCL_DMABUF_ENABLE": "0"}, "warn"),
        (kernel(module_open=True, module_version="470.1"), {}, "warn"),
        (machines.NO_GPU, {}, "ok"),
    ],
)
def test_rows(driver: NvidiaKernel, variables: dict[str, str], expected: str) -> None:
    env = Environment(variables=variables)
    assert worst(CHECK, node(), driver, machines.LINUX, env, TWO, NOT_SET) == expected


def test_one_node_needs_none() -> None:
    facts = (node(), kernel(module_open=False), machines.LINUX, Environment())
    assert worst(CHECK, *facts, NOT_SET, NOT_SET) == "ok"
