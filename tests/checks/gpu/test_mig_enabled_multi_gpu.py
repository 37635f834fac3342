"""Rows of `mig-enabled-multi-gpu`."""

from __future__ import annotations

import pytest

from dsdoctor.api import (
    CudaDevice,
    Environment,
    Gpu,
    Gpus,
    ImportOutcome,
    LaunchCommand,
    Missing,
    RunNeeds,
    TorchLive,
    Why,
)
from dsdoctor.probes.command_line import parse_command
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import mig_enabled_multi_gpu

GPUS = Gpus(gpus=(Gpu(index=0, mig_mode=True), Gpu(index=1, mig_mode=True)))


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(RunNeeds(), "ok", id="the run does not say which GPUs it uses"),
        pytest.param(RunNeeds(gpus=("0",)), "ok", id="the run uses one GPU with MIG"),
        pytest.param(RunNeeds(gpus=("0", "1")), "warn", id="the run names both GPUs with MIG"),
        pytest.param(
            RunNeeds(expect_gpus=2), "warn", id="the run expects two GPUs, and both have MIG"
        ),
    ],
)
def test_rows(fact: RunNeeds, expected: str) -> None:
    assert (
        judge(
            mig_enabled_multi_gpu.several_gpus_are_whole,
            gpus=GPUS,
            run_needs=fact,
            environment=Environment(),
        ).status
        == expected
    )


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [pytest.param(1, "ok", id="one rank"), pytest.param(2, "warn", id="two ranks")],
)
def test_ranks_of_the_command_count(ranks: int, expected: str) -> None:
    command = LaunchCommand(launcher="torchrun", argv=("torchrun", "t.py"), num_gpus=ranks)
    found = judge(
        mig_enabled_multi_gpu.several_gpus_are_whole,
        gpus=GPUS,
        run_needs=RunNeeds(),
        environment=Environment(),
        launch_command=command,
    )
    assert found.status == expected


@pytest.mark.parametrize(
    ("devices", "expected"),
    [pytest.param(1, "fail", id="fewer than ranks"), pytest.param(2, "warn", id="as many")],
)
def test_what_torch_sees_decides(devices: int, expected: str) -> None:
    device = CudaDevice(index=0, name="NVIDIA A100 MIG 3g.40gb", major=8, minor=0, ok=True)
    live = TorchLive(imported=ImportOutcome(ok=True), cuda_ok=True, devices=(device,) * devices)
    found = judge(
        mig_enabled_multi_gpu.several_gpus_are_whole,
        gpus=GPUS,
        run_needs=RunNeeds(),
        environment=Environment(),
        launch_command=LaunchCommand(launcher="torchrun", argv=("torchrun", "t.py"), num_gpus=2),
        torch_live=live,
    )
    assert found.status == expected


@pytest.mark.parametrize(
    ("line", "variables", "expected"),
    [
        pytest.param("python t.py", {}, "ok", id="a single process"),
        pytest.param("torchrun --nproc_per_node 1 t.py", {}, "ok", id="one rank"),
        pytest.param("torchrun --nproc_per_node 2 t.py", {}, "warn", id="two ranks"),
        pytest.param("deepspeed t.py", {}, "warn", id="a rank for each device"),
        pytest.param(
            "python t.py", {"CUDA_VISIBLE_DEVICES": "0,1"}, "warn", id="both are named for it"
        ),
        pytest.param(
            "env CUDA_VISIBLE_DEVICES=0,1 python t.py", {}, "warn", id="both, with the command"
        ),
        pytest.param("", {}, "warn", id="no command"),
    ],
)
def test_a_machine_that_mixes_them(line: str, variables: dict[str, str], expected: str) -> None:
    found = judge(
        mig_enabled_multi_gpu.several_gpus_are_whole,
        gpus=Gpus(gpus=(Gpu(index=0, mig_mode=False), Gpu(index=1, mig_mode=True))),
        run_needs=RunNeeds(),
        environment=Environment(variables=variables),
        launch_command=parse_command(line.split())
        if line
        else Missing(why=Why.NOT_ASKED, detail="no command"),
    )
    assert found.status == expected
