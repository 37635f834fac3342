"""Rows of `deepspeed-env-file-crashes`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.hostfile import parse_hostfile
from dsdoctor.probes.hostfile import parse_env_file
from dsdoctor.testing import judge
from dsdoctor_checks.launch import deepspeed_env_file_crashes as unit
from tests.checks.launch.rows import ABSENT, command

TWO = parse_hostfile("a slots=1\nb slots=1\n", "hosts")


@pytest.mark.parametrize(
    ("text", "hosts", "status"),
    [
        ("NCCL_DEBUG=INFO\nA=b=c\n", TWO, "ok"),
        ("NCCL_DEBUG=INFO\n\nA=1\n", TWO, "fail"),
        ("# remark\n", TWO, "fail"),
        ("# remark\n", ABSENT, "warn"),
        ("# remark = x\n", TWO, "warn"),
    ],
)
def test_env_file(text: str, hosts: Any, status: str) -> None:
    judged = judge(
        unit.env_file_is_sound,
        deep_speed_env_file=parse_env_file(text, ".deepspeed_env"),
        hostfile=hosts,
    )
    assert judged.statuses == status.split()


def test_torchrun_does_not_read_it() -> None:
    file = parse_env_file("\n", ".deepspeed_env")
    assert (
        judge(
            unit.env_file_is_sound,
            deep_speed_env_file=file,
            hostfile=TWO,
            launch_command=command("torchrun t.py"),
        ).status
        == "ok"
    )
