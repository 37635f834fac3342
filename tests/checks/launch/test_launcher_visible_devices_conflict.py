"""Rows of `launcher-visible-devices-conflict`."""

from __future__ import annotations

import pytest

from dsdoctor.api import DeepSpeedInstall, TorchBuild
from dsdoctor.hostfile import parse_hostfile
from dsdoctor.testing import judge
from dsdoctor_checks.launch import launcher_visible_devices_conflict as unit
from tests.checks.launch.rows import command, env


@pytest.mark.parametrize(
    ("line", "visible", "status"),
    [
        pytest.param(
            "deepspeed t.py", "0,1", "ok", id="no options, so deepspeed follows the variable"
        ),
        pytest.param("deepspeed t.py", "", "ok", id="an empty variable"),
        pytest.param(
            "deepspeed --include localhost:4,5 t.py",
            "4,5",
            "ok",
            id="the options include the GPUs of the variable",
        ),
        pytest.param(
            "deepspeed --include localhost:0,1 t.py",
            "4,5",
            "warn",
            id="the options include other GPUs than the variable",
        ),
        pytest.param(
            "deepspeed --num_gpus 2 t.py", "0,1", "ok", id="two GPUs, the first two of the variable"
        ),
        pytest.param(
            "deepspeed --num_gpus 2 t.py",
            "2,3",
            "warn",
            id="the first two GPUs replace GPUs 2 and 3",
        ),
        pytest.param(
            "deepspeed --num_gpus 2 t.py",
            "GPU-1,GPU-2",
            "warn",
            id="the first two GPUs replace UUIDs",
        ),
        pytest.param(
            "deepspeed --num_gpus 2 t.py", "$GPU_IDS", "ok", id="a variable of the script around it"
        ),
        pytest.param(
            "deepspeed t.py", "MIG-1", "fail", id="deepspeed cannot read the name of a MIG slice"
        ),
        pytest.param(
            "torchrun --nproc_per_node 2 t.py",
            "MIG-1",
            "ok",
            id="torchrun passes the name of a MIG slice on",
        ),
        pytest.param("srun deepspeed t.py", "MIG-1", "ok", id="srun may set the variable anew"),
    ],
)
def test_visible_devices(line: str, visible: str, status: str) -> None:
    check = unit.launcher_sees_the_same_devices
    assert (
        judge(
            check, launch_command=command(line), environment=env(CUDA_VISIBLE_DEVICES=visible)
        ).statuses
        == status.split()
    )


@pytest.mark.parametrize(
    ("deepspeed", "torch", "visible", "status"),
    [
        pytest.param("0.10.1", "2.0.1", "2", "fail", id="slot 2 of one visible GPU"),
        pytest.param("0.10.1", "2.0.1", "0,2", "fail", id="slot 2 of two visible GPUs"),
        pytest.param("0.10.1", "2.0.1", "1,0", "ok", id="both slots are visible ones"),
        pytest.param("0.15.2", "2.0.1", "2", "ok", id="DeepSpeed takes the slots as they are"),
        pytest.param("0.10.1", "2.4.0", "2", "ok", id="torch counts the GPUs again"),
    ],
)
def test_numbers_beyond_the_visible_gpus(
    deepspeed: str, torch: str, visible: str, status: str
) -> None:
    found = judge(
        unit.launcher_sees_the_same_devices,
        launch_command=command("deepspeed t.py"),
        environment=env(CUDA_VISIBLE_DEVICES=visible),
        deep_speed_install=DeepSpeedInstall(version=deepspeed),
        torch_build=TorchBuild(version=torch, cuda="11.8"),
    )
    assert found.status == status


@pytest.mark.parametrize(
    ("line", "visible", "status"),
    [
        pytest.param(
            "deepspeed --include localhost:4,5 t.py", "4,5", "fail", id="slot 4 of two visible GPUs"
        ),
        pytest.param(
            "deepspeed --include localhost:0,1 t.py",
            "4,5",
            "warn",
            id="slots 0 and 1 are GPUs 0 and 1",
        ),
        pytest.param("deepspeed t.py", "4,5", "warn", id="no options, and GPUs 0 and 1 are used"),
        pytest.param("deepspeed t.py", "GPU-1", "warn", id="GPU 0 replaces a UUID"),
        pytest.param("deepspeed t.py", "0,1", "ok", id="the first two GPUs"),
    ],
)
def test_a_launcher_that_does_not_read_the_variable(line: str, visible: str, status: str) -> None:
    found = judge(
        unit.launcher_sees_the_same_devices,
        launch_command=command(line),
        environment=env(CUDA_VISIBLE_DEVICES=visible),
        deep_speed_install=DeepSpeedInstall(version="0.5.6"),
        torch_build=TorchBuild(version="1.9.0", cuda="11.1"),
    )
    assert found.statuses == status.split()


def test_with_a_hostfile_the_variable_is_left_alone() -> None:
    hosts = parse_hostfile("a slots=2\n", "hosts")
    check = unit.launcher_sees_the_same_devices
    assert (
        judge(
            check,
            launch_command=command("deepspeed t.py"),
            environment=env(CUDA_VISIBLE_DEVICES="MIG-1"),
            hostfile=hosts,
        ).status
        == "ok"
    )
