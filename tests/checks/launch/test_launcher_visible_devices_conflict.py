"""Rows of `launcher-visible-devices-conflict`."""

from __future__ import annotations

import pytest

from dsdoctor.hostfile import parse_hostfile
from dsdoctor.testing import judge
from dsdoctor_checks.launch import launcher_visible_devices_conflict as unit
from tests.checks.launch.rows import command, env


@pytest.mark.parametrize(
    ("line", "visible", "status"),
    [
        ("deepspeed t.py", "0,1", "ok"),
        ("deepspeed t.py", "", "ok"),
        ("deepspeed --include localhost:4,5 t.py", "4,5", "ok"),
        ("deepspeed --include localhost:0,1 t.py", "4,5", "warn"),
        ("deepspeed --num_gpus 2 t.py", "0,1", "ok"),
        ("deepspeed --num_gpus 2 t.py", "2,3", "warn"),
        ("deepspeed --num_gpus 2 t.py", "GPU-1,GPU-2", "warn"),
        ("deepspeed t.py", "MIG-1", "fail"),
        ("torchrun --nproc_per_node 2 t.py", "MIG-1", "ok"),
        ("srun deepspeed t.py", "MIG-1", "ok"),
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
