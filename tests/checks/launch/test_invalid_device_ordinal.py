"""Rows of `invalid-device-ordinal`."""

from __future__ import annotations

import pytest

from dsdoctor_checks.launch import invalid_device_ordinal as unit
from tests.checks.launch.rows import ABSENT, command, env, gpus, statuses


@pytest.mark.parametrize(
    ("line", "visible", "status"),
    [
        ("deepspeed --num_gpus 4 t.py", None, "ok"),
        ("deepspeed --num_gpus 8 t.py", None, "fail"),
        ("deepspeed --num_gpus 4 t.py", "0,1", "ok"),
        ("deepspeed t.py", None, ""),
        ("torchrun --nproc_per_node 4 t.py", "0,1", "fail"),
        ("torchrun --nproc_per_node gpu t.py", "0,1", ""),
        ("accelerate launch --num_processes 8 --num_machines 2 t.py", None, "ok"),
        ("accelerate launch --cpu --num_processes 8 t.py", None, ""),
        ("python t.py", None, ""),
    ],
)
def test_ranks(line: str, visible: str | None, status: str) -> None:
    environment = env() if visible is None else env(CUDA_VISIBLE_DEVICES=visible)
    found = unit.ranks_have_devices.function(command(line), gpus(4), environment, ABSENT)
    assert statuses(found) == status
