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
        pytest.param(
            "NCCL_DEBUG=INFO\nA=b=c\n",
            TWO,
            "ok",
            id="two settings, one of them with a second equals sign",
        ),
        pytest.param(
            "NCCL_DEBUG=INFO\n\nA=1\n", TWO, "fail", id="an empty line between two settings"
        ),
        pytest.param("# remark\n", TWO, "fail", id="a comment without an equals sign"),
        pytest.param(
            "# remark\n", ABSENT, "warn", id="a comment without an equals sign, but no hostfile"
        ),
        pytest.param(
            "# remark = x\n",
            TWO,
            "warn",
            id="a comment with an equals sign is exported as a setting",
        ),
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
