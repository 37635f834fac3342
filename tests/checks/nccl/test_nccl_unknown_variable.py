"""Rows of `nccl-unknown-variable`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Environment, LaunchCommand, NcclFiles
from dsdoctor.probes.network import parse_settings
from dsdoctor.testing import judge
from dsdoctor_checks.nccl import nccl_unknown_variable


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(
            {"NCCL_DEBUG": "INFO", "NCCL_SOCKET_IFNAME": "eth0"},
            "ok",
            id="two variables that NCCL reads",
        ),
        pytest.param(
            {"NCCL_VERSION": "2.27", "NCCL_BLOCKING_WAIT": "1", "OMP_NUM_THREADS": "4"},
            "ok",
            id="variables of images, of torch and of others",
        ),
        pytest.param({"NCCL_FASTRAK_NUM_FLOWS": "2"}, "ok", id="a variable of a network plugin"),
        pytest.param(
            {"NCCL_TIMEOUT": "1800"}, "warn", id="a timeout is not set by a variable of NCCL"
        ),
        pytest.param({"NCCL_IB_QPS": "4"}, "warn", id="the first and last word of a longer name"),
        pytest.param(
            {"NCCL_SOCKET_IFNMAE": "eth0"}, "warn", id="two letters of a name are swapped"
        ),
    ],
)
def test_rows(fact: dict[str, str], expected: str) -> None:
    facts: dict[str, Any] = {"environment": Environment(variables=fact)}
    assert judge(nccl_unknown_variable.variables_are_read, **facts).status == expected


def test_a_file_and_a_command_are_read_too() -> None:
    files = NcclFiles(files=(parse_settings("NCCL_DEBUG=INFO\nNCCL_IB_QPS=4\n", "/etc/nccl.conf"),))
    command = LaunchCommand(env={"NCCL_TIMEOUT": "1800"})
    found = judge(
        nccl_unknown_variable.variables_are_read,
        environment=Environment(),
        nccl_files=files,
        launch_command=command,
    ).bad
    assert [finding.evidence["variable"] for finding in found] == ["NCCL_IB_QPS", "NCCL_TIMEOUT"]
    assert "line 2 of `/etc/nccl.conf`" in found[0].message
    assert found[0].hint.startswith("remove line 2 from `/etc/nccl.conf`")
    assert found[1].hint == "remove `NCCL_TIMEOUT=1800` from the command"
    assert [finding.fixes for finding in found] == [(), ()]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        pytest.param("NCCL_SOCKET_IFNMAE", "NCCL_SOCKET_IFNAME", id="two swapped letters"),
        pytest.param("NCCL_GDR_LEVEL", "NCCL_NET_GDR_LEVEL", id="a missing word"),
        pytest.param("NCCL_TIMEOUT", None, id="no name is near"),
    ],
)
def test_the_nearest_name(name: str, meant: str | None) -> None:
    assert nccl_unknown_variable.nearest(name) == meant
