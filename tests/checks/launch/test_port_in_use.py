"""Rows of `port-in-use`."""

from __future__ import annotations

import pytest

from dsdoctor.api import MasterPort
from dsdoctor.testing import judge
from dsdoctor_checks.launch import port_in_use as unit
from tests.checks.launch.rows import ABSENT, command


@pytest.mark.parametrize(
    ("port", "line", "status"),
    [
        (MasterPort(port=29500), "deepspeed t.py", "ok"),
        (MasterPort(port=29500, taken=True), "deepspeed t.py", "fail"),
        (MasterPort(port=29500, taken=True), "", "warn"),
        (MasterPort(port=29500, taken=True), "python t.py", "ok"),
        (MasterPort(port=29500, taken=True, asked=True), "python t.py", "fail"),
        (MasterPort(port=29500, taken=True), "bash run.sh", "ok"),
        (MasterPort(port=29500, taken=True, remote=True, host="n1"), "deepspeed t.py", "warn"),
        (MasterPort(port=29500, remote=True, host="n1"), "deepspeed t.py", "ok"),
    ],
)
def test_port(port: MasterPort, line: str, status: str) -> None:
    given = command(line) if line else ABSENT
    assert (
        judge(unit.port_is_free, master_port=port, launch_command=given).statuses == status.split()
    )
