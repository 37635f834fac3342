"""Rows of `invalid-device-ordinal`."""

from __future__ import annotations

import pytest

from dsdoctor.testing import judge
from dsdoctor_checks.launch import invalid_device_ordinal as unit
from tests.checks.launch.rows import command, env, gpus


@pytest.mark.parametrize(
    ("line", "visible", "status"),
    [
        ("deepspeed --num_gpus 4 t.py", None, "ok"),
        ("deepspeed --num_gpus 8 t.py", None, "fail"),
        ("deepspeed --num_gpus 4 t.py", "0,1", "ok"),
        ("deepspeed t.py", None, "ok"),
        ("torchrun --nproc_per_node 4 t.py", "0,1", "fail"),
        ("torchrun --nproc_per_node gpu t.py", "0,1", "ok"),
        ("accelerate launch --num_processes 8 --num_machines 2 t.py", None, "ok"),
        ("accelerate launch --cpu --num_processes 8 t.py", None, "ok"),
        ("python t.py", None, "ok"),
    ],
)
def test_ranks(line: str, visible: str | None, status: str) -> None:
    environment = env() if visible is None else env(CUDA_VISIBLE_DEVICES=visible)
    judged = judge(
        unit.ranks_have_devices, launch_command=command(line), gpus=gpus(4), environment=environment
    )
    assert judged.statuses == status.split()
