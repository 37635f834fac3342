"""Rows of `imex-unavailable`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import (
    Environment,
    FabricState,
    Gpu,
    Gpus,
    LaunchCommand,
    NvidiaKernel,
    OsInfo,
)
from dsdoctor.model.facts.gpu import GpuFabric
from dsdoctor.testing import judge
from dsdoctor_checks.nccl import imex_unavailable

RACK = "5a1f" * 8
NODE = "0" * 32


def gpus(cluster: str | None = RACK, state: int = FabricState.COMPLETED) -> Gpus:
    fabric = GpuFabric(state=state, status=0, clique=32766, cluster=cluster)
    return Gpus(
        gpus=tuple(Gpu(index=index, name="NVIDIA GB200", fabric=fabric) for index in range(4))
    )


def judged(**facts: Any) -> Any:
    facts = {
        "gpus": gpus(),
        "nvidia_kernel": NvidiaKernel(module_version="580.95.05", imex_channels=()),
        "environment": Environment(variables={"SLURM_NNODES": "2"}),
        **facts,
    }
    return judge(imex_unavailable.imex_serves_the_nodes, **facts)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param({}, "fail", id="two nodes of a rack without a channel"),
        pytest.param(
            {"nvidia_kernel": NvidiaKernel(imex_channels=("channel0",))},
            "ok",
            id="a channel exists",
        ),
        pytest.param({"nvidia_kernel": NvidiaKernel()}, "skip", id="channels that were not read"),
        pytest.param({"gpus": gpus(NODE)}, "ok", id="a fabric that ends at the node"),
        pytest.param({"gpus": gpus(None)}, "ok", id="a driver that names no domain"),
        pytest.param(
            {"gpus": gpus(state=FabricState.IN_PROGRESS)}, "ok", id="not registered, told elsewhere"
        ),
        pytest.param({"environment": Environment(variables={})}, "skip", id="a run on one node"),
        pytest.param(
            {"environment": Environment(variables={"NCCL_MNNVL_ENABLE": "1"})},
            "fail",
            id="asked for on one node",
        ),
        pytest.param(
            {
                "launch_command": LaunchCommand(argv=("torchrun",), num_nodes=2),
                "environment": Environment(),
            },
            "fail",
            id="two nodes by the command",
        ),
        pytest.param(
            {"environment": Environment(variables={"SLURM_NNODES": "2", "NCCL_MNNVL_ENABLE": "0"})},
            "skip",
            id="told not to use NVLink between nodes",
        ),
        pytest.param(
            {"environment": Environment(variables={"SLURM_NNODES": "2", "NCCL_P2P_DISABLE": "1"})},
            "skip",
            id="told to use no peer access",
        ),
        pytest.param(
            {"environment": Environment(variables={"SLURM_NNODES": "2", "NCCL_P2P_LEVEL": "LOC"})},
            "skip",
            id="told to use peer access nowhere",
        ),
    ],
)
def test_rows(facts: dict[str, Any], expected: str) -> None:
    assert judged(**facts).status == expected


def test_a_container_is_given_a_channel() -> None:
    os = OsInfo(system="Linux", release="", machine="", hostname="", container="kubernetes")
    assert "ComputeDomain" in judged(os_info=os).worst.hint
    assert "NVreg_CreateImexChannel0" in judged().worst.hint
