"""Rows of `gpudirect-rdma-missing`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor.api import Environment, Gpu, Gpus, NvidiaKernel
from dsdoctor.testing import judge
from dsdoctor_checks.nccl import gpudirect_rdma_missing
from tests.checks import machines
from tests.checks.nccl.test_rdma_port_down import TWO, node

CHECK = gpudirect_rdma_missing.adapters_access_gpus


def kernel(**changes: Any) -> NvidiaKernel:
    return msgspec.structs.replace(machines.kernel(), **changes)


@pytest.mark.parametrize(
    ("driver", "variables", "expected"),
    [
        pytest.param(
            kernel(modules=("nvidia", "nvidia_peermem")), {}, "ok", id="nvidia_peermem is loaded"
        ),
        pytest.param(
            kernel(modules=("nv_peer_mem", "nvidia")),
            {},
            "ok",
            id="the older nv_peer_mem is loaded",
        ),
        pytest.param(
            kernel(module_open=True), {}, "ok", id="the open module exports memory by dma-buf"
        ),
        pytest.param(
            kernel(module_open=False),
            {},
            "warn",
            id="the closed module without peermem cannot reach the adapters",
        ),
        pytest.param(
            kernel(module_open=False),
            {"NCCL_IB_DISABLE": "1"},
            "skip",
            id="NCCL does not use the adapters at all",
        ),
        pytest.param(
            kernel(module_open=True),
            {"NCCL_DMABUF_ENABLE": "0"},
            "warn",
            id="the open module could, but NCCL may not use dma-buf",
        ),
        pytest.param(
            kernel(module_open=True, module_version="470.1"),
            {},
            "warn",
            id="the open module is too old for dma-buf",
        ),
        pytest.param(machines.NO_GPU, {}, "skip", id="a node without an NVIDIA GPU"),
    ],
)
def test_rows(driver: NvidiaKernel, variables: dict[str, str], expected: str) -> None:
    env = Environment(variables=variables)
    assert (
        judge(
            CHECK,
            network=node(),
            nvidia_kernel=driver,
            os_info=machines.LINUX,
            environment=env,
            hostfile=TWO,
        ).status
        == expected
    )


def test_adapters_of_aws_have_a_module_of_their_own() -> None:
    network = node()
    of_aws = tuple(msgspec.structs.replace(port, driver="efa") for port in network.rdma)
    for ports, expected in ((of_aws, "skip"), ((*of_aws, network.rdma[0]), "warn")):
        found = judge(
            CHECK,
            network=msgspec.structs.replace(network, rdma=ports),
            nvidia_kernel=kernel(module_open=False),
            os_info=machines.LINUX,
            hostfile=TWO,
        )
        assert found.status == expected


def test_one_node_needs_none() -> None:
    facts: dict[str, Any] = {
        "network": node(),
        "nvidia_kernel": kernel(module_open=False),
        "os_info": machines.LINUX,
        "environment": Environment(),
    }
    assert judge(CHECK, **facts).status == "skip"


def test_memory_that_the_cpu_and_the_gpu_share_is_out_of_reach() -> None:
    for name, expected in (("NVIDIA GB10", "skip"), ("NVIDIA GB200", "warn")):
        found = judge(
            CHECK,
            network=node(),
            nvidia_kernel=kernel(module_open=False),
            os_info=machines.LINUX,
            hostfile=TWO,
            gpus=Gpus(gpus=(Gpu(index=0, name=name),), count=1),
        )
        assert found.status == expected
