"""Rows of `deepspeed-env-file-crashes`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.hostfile import parse_hostfile
from dsdoctor.probes.hostfile import parse_env_file
from dsdoctor_checks.launch import deepspeed_env_file_crashes as unit
from tests.checks.launch.rows import ABSENT, command, statuses

TWO = parse_hostfile("a slots=1\nb slots=1\n", "hosts")


@pytest.mark.parametrize(
    ("text", "hosts", "status"),
    [
        ("NCCL_DEBUG=INFO\nA=b=c\n", TWO, ""),
        ("NCCL_DEBUG=INFO\n\nA=1\n", TWO, "fail"),
        ("# remark\n", TWO, "fail"),
        ("# remark\n", ABSENT, "warn"),
        ("# remark = x\n", TWO, "warn"),
    ],
)
def test_env_file(text: str, hosts: Any, status: str) -> None:
    found = unit.env_file_is_sound.function(parse_env_file(text, ".deepspeed_env"), hosts, ABSENT)
    assert statuses(found) == status


def test_torchrun_does_not_read_it() -> None:
    file = parse_env_file("\n", ".deepspeed_env")
    assert not list(unit.env_file_is_sound.function(file, TWO, command("torchrun t.py")))
