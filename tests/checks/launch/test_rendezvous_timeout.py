"""Rows of `rendezvous-timeout`, and what the master address is read from."""

from __future__ import annotations

import pytest

from dsdoctor.api import MasterAddress, RunNeeds
from dsdoctor.host import HostError
from dsdoctor.probes.ports import master_address
from dsdoctor.testing import FakeHost, judge
from dsdoctor_checks.launch import rendezvous_timeout

KNOWN = {
    "/usr/bin/getent ahosts node-a": "10.0.0.1       STREAM node-a\n10.0.0.1       DGRAM\n",
    "/usr/bin/getent ahosts ::1": "::1             STREAM ::1\n",
    "/usr/bin/getent ahosts node-x": "",
}


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(MasterAddress(host="node-a", addresses=("10.0.0.1",)), "ok", id="it resolves"),
        pytest.param(MasterAddress(host="node-x"), "fail", id="nobody knows the name"),
    ],
)
def test_rows(fact: MasterAddress, expected: str) -> None:
    found = judge(rendezvous_timeout.master_address_resolves, master_address=fact)
    assert found.status == expected


def read(line: str, *, quick: bool = False, **env: str) -> MasterAddress:
    host = FakeHost(env={"PATH": "/usr/bin", **env}, files={"/usr/bin/getent": ""}, commands=KNOWN)
    run = RunNeeds(command=tuple(line.split()), quick=quick)
    found: MasterAddress = master_address.function(host, run)
    return found


def test_the_address_of_the_command_is_resolved() -> None:
    found = read("torchrun --nnodes 2 --node-rank 1 --master-addr node-a t.py")
    assert (found.host, found.addresses) == ("node-a", ("10.0.0.1",))
    assert read("torchrun --nnodes 2 --master-addr node-x t.py").addresses == ()
    assert read("python t.py", MASTER_ADDR="node-x").host == "node-x"


@pytest.mark.parametrize(
    ("line", "quick", "env"),
    [
        pytest.param("torchrun --nproc-per-node 2 t.py", False, {}, id="one node"),
        pytest.param(
            "torchrun --nproc-per-node 2 t.py", False, {"MASTER_ADDR": "node-x"},
            id="torchrun sets the variable itself",
        ),
        pytest.param("torchrun --master-addr $HEAD t.py", False, {}, id="a variable of the shell"),
        pytest.param("torchrun --master-addr node-x t.py", True, {}, id="quick resolves nothing"),
    ],
)  # fmt: skip
def test_nothing_is_resolved(line: str, quick: bool, env: dict[str, str]) -> None:
    with pytest.raises(HostError):
        read(line, quick=quick, **env)
