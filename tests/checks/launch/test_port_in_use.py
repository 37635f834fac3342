"""Rows of `port-in-use`."""

from __future__ import annotations

import pytest

from dsdoctor.api import MasterPort, Package, Packages
from dsdoctor.testing import judge
from dsdoctor_checks.launch import port_in_use as unit
from tests.checks.launch.rows import ABSENT, command


@pytest.mark.parametrize(
    ("port", "line", "status"),
    [
        pytest.param(MasterPort(port=29500), "deepspeed t.py", "ok", id="the port is free"),
        pytest.param(
            MasterPort(port=29500, taken=True), "deepspeed t.py", "fail", id="the port is taken"
        ),
        pytest.param(
            MasterPort(port=29500, taken=True),
            "",
            "warn",
            id="the port is taken, but no command was named",
        ),
        pytest.param(
            MasterPort(port=29500, taken=True),
            "python t.py",
            "ok",
            id="a script without a launcher opens no port",
        ),
        pytest.param(
            MasterPort(port=29500, taken=True, asked=True),
            "python t.py",
            "fail",
            id="the user asked for the port that is taken",
        ),
        pytest.param(
            MasterPort(port=29500, taken=True, asked=True),
            "llamafactory-cli train a.yaml",
            "fail",
            id="a trainer passes MASTER_PORT to torchrun",
        ),
        pytest.param(
            MasterPort(port=29500, taken=True),
            "llamafactory-cli train a.yaml",
            "ok",
            id="a trainer chooses a free port",
        ),
        pytest.param(
            MasterPort(port=29500, taken=True),
            "bash run.sh",
            "ok",
            id="a shell script may choose another port",
        ),
        pytest.param(
            MasterPort(port=29500, taken=True, remote=True, host="n1"),
            "deepspeed t.py",
            "warn",
            id="the port is taken here, but the master is another node",
        ),
        pytest.param(
            MasterPort(port=29500, remote=True, host="n1"),
            "deepspeed t.py",
            "ok",
            id="the master is another node and the port is free here",
        ),
        pytest.param(
            MasterPort(port=520, reserved=True), "deepspeed t.py", "fail", id="the port is root's"
        ),
        pytest.param(
            MasterPort(port=520, reserved=True, taken=True),
            "deepspeed t.py",
            "fail",
            id="root's port, and taken",
        ),
    ],
)
def test_port(port: MasterPort, line: str, status: str) -> None:
    given = command(line) if line else ABSENT
    assert (
        judge(unit.port_is_free, master_port=port, launch_command=given, packages=ABSENT).statuses
        == status.split()
    )


@pytest.mark.parametrize(
    ("version", "line", "status"),
    [
        pytest.param("1.8.1", "accelerate launch t.py", "ok", id="it takes a free port"),
        pytest.param("1.7.0", "accelerate launch t.py", "fail", id="an earlier release stops"),
        pytest.param(
            "1.15.0", "accelerate launch --num_machines 2 t.py", "fail", id="several nodes"
        ),
        pytest.param("1.15.0", "torchrun t.py", "fail", id="not the launcher of accelerate"),
    ],
)
def test_accelerate_chooses_another_port(version: str, line: str, status: str) -> None:
    packages = Packages(packages={"accelerate": Package(name="accelerate", version=version)})
    judged = judge(
        unit.port_is_free,
        master_port=MasterPort(port=29500, taken=True),
        launch_command=command(line),
        packages=packages,
    )
    assert judged.statuses == [status]
